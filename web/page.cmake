# cmake -DPAGE=name -DTITLE=text -DSUBJECT=text -DFRAME=file -DCONTENT=file -DOUTPUT=file -P page.cmake: a page is its content in
# the frame.
if(PAGE STREQUAL "index")
  set(CURRENT " aria-current=\"page\"")
endif()
file(READ ${CONTENT} MAIN)
configure_file(${FRAME} ${OUTPUT} @ONLY NEWLINE_STYLE UNIX)
