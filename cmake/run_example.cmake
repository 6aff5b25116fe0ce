# Runs PROGRAM and compares its standard output, byte by byte, with the file EXPECTED.
# The output is kept in ACTUAL; to accept it as the new answer, copy it over EXPECTED.

execute_process(COMMAND $ENV{FINETTI_EMULATOR} ${PROGRAM} OUTPUT_FILE ${ACTUAL} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${EXPECTED} ${ACTUAL} RESULT_VARIABLE differs
                OUTPUT_QUIET ERROR_QUIET)
if(differs)
  find_program(diff diff)
  if(diff)
    execute_process(COMMAND ${diff} -u ${EXPECTED} ${ACTUAL})
  endif()
  message(FATAL_ERROR "${PROGRAM} did not print what ${EXPECTED} says; it printed ${ACTUAL}")
endif()
