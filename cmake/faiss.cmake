# SPDX-License-Identifier: MIT
# Chooses the FAISS to build with. Afterwards there is a target faiss, and set are
#
#   faiss_include_dir   the folder of its headers
#   faiss_version       their version
#   faiss_library       the file, if it is a shared library that was given or
#                       that the faiss module uses
#   faiss_runtime       OpenMP, BLAS and LAPACK, where they must be linked besides
#   faiss_module_...    what the interpreter's faiss module is (probe_faiss.py)
#
# A Python package must use the FAISS that the interpreter's faiss module uses.
# Where that is a shared library, it is linked, whatever its name. Its headers
# are beside it, or below CMAKE_PREFIX_PATH, or in FAISS_EXT_FAISS_INCLUDE_DIR:
# the wheels of faiss-cpu, since 1.14.2, bring faiss/libfaiss.so without headers.
# Otherwise, and without Python, it is the FAISS that find_package(faiss) finds.

include(cmake/faiss_library.cmake)

set(FAISS_EXT_FAISS_LIBRARY "" CACHE FILEPATH
    "FAISS's shared library, where find_package(faiss) does not know it: the libfaiss.so of a wheel")
# the environment counts where it is new
set(given "$ENV{FAISS_EXT_FAISS_INCLUDE_DIR}")
if(given AND NOT given STREQUAL "${faiss_include_dir_of_environment}")
  set(faiss_include_dir_of_environment "${given}" CACHE INTERNAL "")
  set(FAISS_EXT_FAISS_INCLUDE_DIR "${given}" CACHE PATH "" FORCE)
endif()
if(FAISS_EXT_FAISS_INCLUDE_DIR) # (makes an absolute path of a relative one)
  set(FAISS_EXT_FAISS_INCLUDE_DIR "" CACHE PATH "The folder that holds faiss/Index.h")
endif()

# Sets faiss_module_<fact> for the facts of probe_faiss.py.
function(probe_faiss_module)
  execute_process(
    COMMAND ${Python3_EXECUTABLE}
      ${PROJECT_SOURCE_DIR}/python_bindings/probe_faiss.py
    WORKING_DIRECTORY / # where no folder is named faiss
    OUTPUT_VARIABLE facts ERROR_VARIABLE error RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${Python3_EXECUTABLE} cannot import faiss:\n${error}"
      "Install FAISS for it (pip install faiss-cpu; Debian: python3-faiss), or "
      "give another interpreter with -DPython3_EXECUTABLE=...")
  endif()
  string(REGEX MATCHALL "[^\n]+" facts "${facts}")
  foreach(fact IN LISTS facts)
    string(REGEX MATCH "^([a-z_]+)=(.*)$" fact "${fact}")
    set(faiss_module_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" PARENT_SCOPE)
  endforeach()
endfunction()

# Asks a library for its version, which it knows since 1.9.0; empty if it does
# not.
function(ask_faiss_version result)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/faiss_version.cpp)
  file(WRITE ${source} "#include <iostream>
namespace faiss { std::string get_version(); }
int main() { std::cout << faiss::get_version(); }
")
  if(NOT CMAKE_CROSSCOMPILING)
    try_run(status compiled ${CMAKE_CURRENT_BINARY_DIR}/faiss_version ${source}
      LINK_LIBRARIES faiss RUN_OUTPUT_VARIABLE version)
  endif()
  if(NOT compiled OR NOT "${status}" STREQUAL "0")
    set(version)
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

if(FAISS_EXT_FAISS_LIBRARY)
  get_filename_component(faiss_library "${FAISS_EXT_FAISS_LIBRARY}" REALPATH)
  if(NOT EXISTS ${faiss_library} OR IS_DIRECTORY ${faiss_library})
    message(FATAL_ERROR "FAISS_EXT_FAISS_LIBRARY is "
      "'${FAISS_EXT_FAISS_LIBRARY}', which is no file")
  endif()
endif()

if(FAISS_EXT_BUILD_PYTHON)
  find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module)
  probe_faiss_module()
  if(NOT faiss_module_exports)
    message(FATAL_ERROR "The faiss module of ${Python3_EXECUTABLE} "
      "(${faiss_module_version}, ${faiss_module_package}) hides FAISS's "
      "symbols, as the wheels of faiss-cpu before 1.14.2 do: nothing can be "
      "linked with it. Install a newer one: pip install -U faiss-cpu")
  endif()
  if(CMAKE_CROSSCOMPILING) # the module only tells the version and SWIG's types
    if(NOT faiss_library)
      message(FATAL_ERROR "To compile for ${CMAKE_SYSTEM_PROCESSOR}, give the "
        "libfaiss.so of its faiss-cpu, in version ${faiss_module_version}, with "
        "-DFAISS_EXT_FAISS_LIBRARY=...")
    endif()
    set(faiss_module_library ${faiss_library})
  elseif(faiss_library AND NOT faiss_library STREQUAL "${faiss_module_library}")
    message(FATAL_ERROR "FAISS_EXT_FAISS_LIBRARY is "
      "${FAISS_EXT_FAISS_LIBRARY}, but that is not the FAISS which the faiss "
      "module of ${Python3_EXECUTABLE} (${faiss_module_package}) uses; leave it "
      "out")
  endif()
  set(faiss_library "${faiss_module_library}")
  set(faiss_library_version ${faiss_module_version})
elseif(faiss_library)
  # a wheel's version is that of its package
  get_filename_component(folder ${faiss_library} DIRECTORY)
  file(GLOB info ${folder}/../faiss_cpu-*.dist-info)
  if("${info}" MATCHES "faiss_cpu-([0-9.]*[0-9])")
    set(faiss_library_version ${CMAKE_MATCH_1})
  endif()
endif()

if(faiss_library)
  if(FAISS_EXT_BUILD_PYTHON) # (else nothing might tell wrong ones)
    get_filename_component(folder ${faiss_library} DIRECTORY)
    find_path(FAISS_EXT_FAISS_INCLUDE_DIR faiss/Index.h
      HINTS ${folder}/../include
      DOC "The folder that holds faiss/Index.h, where FAISS's library comes without headers")
  endif()
  set(remedy "Give the headers of that version: "
    "-DFAISS_EXT_FAISS_INCLUDE_DIR=DIR (or the environment variable of that "
    "name), where DIR is a checkout of FAISS at its tag, or where it was "
    "installed: the folder that holds faiss/Index.h")
  set(given "${FAISS_EXT_FAISS_INCLUDE_DIR}")
  if(NOT EXISTS ${given}/faiss/Index.h)
    unset(FAISS_EXT_FAISS_INCLUDE_DIR CACHE)
    message(FATAL_ERROR "${faiss_library} comes without headers, and they are "
      "not in '${given}'. " ${remedy})
  endif()
  add_faiss_library(${faiss_library} ${FAISS_EXT_FAISS_INCLUDE_DIR})
  if(NOT faiss_library_version)
    ask_faiss_version(faiss_library_version)
  endif()
  set(faiss_runtime)
  set(faiss_include_dir ${FAISS_EXT_FAISS_INCLUDE_DIR})
else()
  find_package(faiss REQUIRED)
  find_package(LAPACK REQUIRED)
  set(faiss_runtime OpenMP::OpenMP_CXX LAPACK::LAPACK)
  get_target_property(faiss_include_dir faiss INTERFACE_INCLUDE_DIRECTORIES)
  list(GET faiss_include_dir 0 faiss_include_dir)
  set(remedy "Give the FAISS that the faiss module was built from with "
    "-DCMAKE_PREFIX_PATH=..., or another interpreter with "
    "-DPython3_EXECUTABLE=...")
endif()
read_faiss_version(${faiss_include_dir} faiss_version)

# Classes may have other members in the next version, even in a patch.
if(FAISS_EXT_BUILD_PYTHON OR faiss_library)
  set(what "${faiss_library}")
  if(FAISS_EXT_BUILD_PYTHON)
    set(what "The faiss module of ${Python3_EXECUTABLE} (${faiss_module_package})")
  endif()
  string(REGEX MATCH "^[0-9.]*[0-9]" number "${faiss_library_version}")
  if(number AND NOT number VERSION_EQUAL faiss_version)
    unset(FAISS_EXT_FAISS_INCLUDE_DIR CACHE) # looked for again next time
    unset(faiss_DIR CACHE)
    message(FATAL_ERROR "${what} is FAISS ${faiss_library_version}, the headers "
      "in ${faiss_include_dir} are of FAISS ${faiss_version}; what is built "
      "with them would crash. " ${remedy})
  endif()
endif()
message(STATUS "FAISS ${faiss_version}, headers in ${faiss_include_dir}")
