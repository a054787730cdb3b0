# Makes a page from its content, the parts that several pages share, and the frame. Usage: cmake -DPAGE=name -DTITLE=text
# -DSUBJECT=text -DFRAME=file -DCONTENT=file -DOUTPUT=file -P page.cmake
string(TOUPPER "${PAGE}" page)
set("CURRENT_${page}" " aria-current=\"page\"") # marks the page's link in the navigation
file(READ ${CONTENT} MAIN)
file(READ ${CMAKE_CURRENT_LIST_DIR}/parts/comparison.html COMPARISON)
string(CONFIGURE "${MAIN}" MAIN @ONLY)
configure_file(${FRAME} ${OUTPUT} @ONLY NEWLINE_STYLE UNIX)
