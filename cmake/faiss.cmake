# Chooses the FAISS to build with. Afterwards there is a target faiss, and set are
#
#   faiss_include_dir   the folder of its headers
#   faiss_version       their version
#   faiss_library       the file, if not from find_package(faiss)
#   faiss_runtime       OpenMP, BLAS and LAPACK, where they must be linked besides
#   faiss_module_...    what the interpreter's faiss module is (probe_faiss.py)
#
# A Python package must use the FAISS that the interpreter's faiss module uses.
# The wheels of faiss-cpu, since 1.14.2, bring it as faiss/libfaiss.so, without
# headers: those are taken from FAISS_EXT_FAISS_INCLUDE_DIR. Otherwise, and
# without Python, it is the FAISS that find_package(faiss) finds.

set(FAISS_EXT_FAISS_LIBRARY "" CACHE FILEPATH
    "FAISS's shared library, where find_package(faiss) does not know it: the libfaiss.so of a wheel")
if(DEFINED ENV{FAISS_EXT_FAISS_INCLUDE_DIR})
  set(FAISS_EXT_FAISS_INCLUDE_DIR "$ENV{FAISS_EXT_FAISS_INCLUDE_DIR}" CACHE PATH "")
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

function(read_faiss_version include_dir result)
  file(STRINGS ${include_dir}/faiss/Index.h lines REGEX
    "#define FAISS_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  string(JOIN "." version ${numbers})
  set(${result} ${version} PARENT_SCOPE)
endfunction()

if(FAISS_EXT_BUILD_PYTHON)
  find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module)
  probe_faiss_module()
  if(NOT faiss_module_exports)
    message(FATAL_ERROR "The faiss module of ${Python3_EXECUTABLE} "
      "(${faiss_module_version}, ${faiss_module_package}) hides FAISS's "
      "symbols, as the wheels of faiss-cpu before 1.14.2 do: nothing can be "
      "linked with it. Install a newer one: pip install -U faiss-cpu")
  endif()
  if(faiss_module_library AND FAISS_EXT_FAISS_LIBRARY AND
     NOT faiss_module_library STREQUAL FAISS_EXT_FAISS_LIBRARY)
    message(FATAL_ERROR "FAISS_EXT_FAISS_LIBRARY is "
      "${FAISS_EXT_FAISS_LIBRARY}, but the faiss module of "
      "${Python3_EXECUTABLE} uses ${faiss_module_library}; leave it out")
  endif()
  set(faiss_library "${faiss_module_library}")
endif()
if(NOT faiss_library)
  set(faiss_library "${FAISS_EXT_FAISS_LIBRARY}")
endif()

if(faiss_library)
  if(NOT EXISTS ${faiss_library})
    message(FATAL_ERROR "There is no FAISS_EXT_FAISS_LIBRARY ${faiss_library}")
  endif()
  # without a folder given, headers installed beside the system's libraries, or
  # below CMAKE_PREFIX_PATH, may be the right ones
  find_path(FAISS_EXT_FAISS_INCLUDE_DIR faiss/Index.h
    DOC "The folder that holds faiss/Index.h, where FAISS's library comes without headers")
  set(remedy "Give the headers of that version: "
    "-DFAISS_EXT_FAISS_INCLUDE_DIR=DIR (or the environment variable of that "
    "name), where DIR is a checkout of FAISS at its tag, the folder that holds "
    "faiss/Index.h")
  if(NOT EXISTS ${FAISS_EXT_FAISS_INCLUDE_DIR}/faiss/Index.h)
    message(FATAL_ERROR "${faiss_library} "
      "(FAISS ${faiss_module_version}) comes without headers, and there is no "
      "'${FAISS_EXT_FAISS_INCLUDE_DIR}/faiss/Index.h'. " ${remedy})
  endif()
  include(cmake/faiss_library.cmake)
  add_faiss_library(${faiss_library} ${FAISS_EXT_FAISS_INCLUDE_DIR})
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

# Within one minor version, classes have the same layout.
if(FAISS_EXT_BUILD_PYTHON)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" faiss_minor_version ${faiss_version})
  if(NOT "${faiss_module_version}." MATCHES "^${faiss_minor_version}\\.")
    message(FATAL_ERROR "The faiss module of ${Python3_EXECUTABLE} "
      "(${faiss_module_package}) is FAISS ${faiss_module_version}, the headers "
      "in ${faiss_include_dir} are of FAISS ${faiss_version}; a module built "
      "with them would crash. " ${remedy})
  endif()
endif()
message(STATUS "FAISS ${faiss_version}, headers in ${faiss_include_dir}")
