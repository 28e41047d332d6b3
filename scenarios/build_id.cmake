# Writes OUT from IN with the commit of the working directory; leaves an equal file alone, so that nothing is built for it.
execute_process(COMMAND git describe --always --dirty --tags
  OUTPUT_VARIABLE SOURCE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT SOURCE)
  set(SOURCE unknown)
endif()
configure_file(${IN} ${OUT} @ONLY)
