# cmake -DSOURCE=dir -DOUTPUT=header -P commit.cmake: writes the git commit of the tree to a header, if it has changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(NOT "$ENV{ROOFLINED_COMMIT}" STREQUAL "") # a source tree without .git, as in the build of an image
  set(commit "$ENV{ROOFLINED_COMMIT}")
elseif(failed)
  set(commit "unknown")
endif()
set(text "#define RL_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
