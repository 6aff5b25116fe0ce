# No name escapes: SHARED defines only fin_..., STATIC only fin_... and fini_...

function(check file pattern)
  execute_process(COMMAND ${NM} ${ARGN} --defined-only --extern-only --format=posix ${file}
                  OUTPUT_VARIABLE text RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${NM} ${file} failed")
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${text}")
  set(count 0)
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([A-Za-z_0-9.]+) ([A-Z]) ")
      continue() # the name of an archive member
    endif()
    set(name ${CMAKE_MATCH_1})
    if(name MATCHES "^\\.")
      continue() # made by the compiler, for OpenMP
    endif()
    math(EXPR count "${count} + 1")
    if(NOT name MATCHES "${pattern}")
      message(SEND_ERROR "${file} defines ${name}: make it static, or give it a prefix")
    endif()
  endforeach()
  if(count EQUAL 0)
    message(FATAL_ERROR "${file} defines nothing")
  endif()
endfunction()

check(${SHARED} "^fin_" --dynamic)
check(${STATIC} "^fini?_")
