# Compiles every public header by itself, as C11 and (where there is a C++ compiler) as C++, with
# warnings as errors; and the umbrella must name them all.

file(GLOB headers RELATIVE ${SRC}/include ${SRC}/include/*.h ${SRC}/include/finetti/*.h)

function(compile compiler header)
  execute_process(
    COMMAND ${compiler} ${ARGN} -Wall -Wextra -Werror -pedantic -fsyntax-only -I ${SRC}/include
            -DFINETTI_HEADER=<${header}> ${SRC}/tests/header_cxx.cpp
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${header} does not compile with ${compiler} ${ARGN}")
  endif()
endfunction()

find_program(cxx NAMES c++ g++ clang++)
if(NOT cxx)
  message(STATUS "no C++ compiler: headers are checked as C only")
endif()
foreach(header IN LISTS headers)
  compile(${CC} ${header} -x c -std=c11)
  if(cxx)
    compile(${cxx} ${header} -x c++ -std=c++11)
  endif()
endforeach()

if(EXISTS ${SRC}/include/finetti.h)
  file(READ ${SRC}/include/finetti.h umbrella)
  list(FILTER headers INCLUDE REGEX "^finetti/")
  foreach(header IN LISTS headers)
    string(FIND "${umbrella}" "${header}" place)
    if(place EQUAL -1)
      message(SEND_ERROR "include/finetti.h does not include ${header}")
    endif()
  endforeach()
endif()
