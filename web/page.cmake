# Makes a page from its content, the parts that several pages share, and the frame. Usage: cmake -DPAGE=name -DTITLE=text
# -DSUBJECT=text -DFRAME=file -DCONTENT=file -DOUTPUT=file -P page.cmake
cmake_minimum_required(VERSION 3.24...3.25)
string(TOUPPER "${PAGE}" page)
set("CURRENT_${page}" " aria-current=\"page\"") # marks the page's link in the navigation
file(READ ${CONTENT} MAIN)
file(READ ${CMAKE_CURRENT_LIST_DIR}/parts/comparison.html COMPARISON)
string(CONFIGURE "${MAIN}" MAIN @ONLY)

# Adds to the list `modules` the modules that a script imports, and those that they import in turn.
function(rl_add_imports script)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/${script} text)
  string(REGEX MATCHALL "(from|import) '/lib/[a-z_/]+\\.js'" imports "${text}")
  foreach(import IN LISTS imports)
    string(REGEX MATCH "lib/[a-z_/]+\\.js" module "${import}")
    if(NOT module IN_LIST modules)
      list(APPEND modules ${module})
      rl_add_imports(${module})
    endif()
  endforeach()
  set(modules ${modules} PARENT_SCOPE)
endfunction()

# The main page names all its modules in its head, so that the browser loads them together with the script. Otherwise it would
# find the imports of a module only after it has loaded that module.
set(modules)
if(PAGE STREQUAL index)
  rl_add_imports(${PAGE}.js)
endif()
set(PRELOADS)
foreach(module IN LISTS modules)
  string(APPEND PRELOADS "  <link rel=\"modulepreload\" href=\"/${module}\">\n")
endforeach()
configure_file(${FRAME} ${OUTPUT} @ONLY NEWLINE_STYLE UNIX)
