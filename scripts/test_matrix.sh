#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds faiss_ext and runs its tests with each common FAISS installation, and
# prints a table of the results.
#
#   scripts/test_matrix.sh [OPTION...] [ROW...]
#
# Rows (default: all of them but forky):
#   bookworm   Debian 12 with its packages, in a new minimal system (needs root);
#              also makes, installs and tests the packages of build_deb.sh
#   trixie     the same for Debian 13
#   forky      the same for Debian testing, which changes every day
#   wheel      faiss-cpu from PyPI: the wheel of build_wheel.sh in a clean
#              environment, and the C++ tests with the wheel's libfaiss.so; also
#              FAISS's own tests (faiss_conformance.sh) if DIR has FAISS 1.15
#   source     a FAISS that was built from source and installed
#
# Options:
#   --faiss-include DIR    FAISS's headers, for wheel: see build_wheel.sh
#   --wheel-python PYTHON  another interpreter, for wheel, in which the code of
#                          README.md runs; can be repeated
#   --faiss-prefix DIR     prefix where FAISS was installed, for source
#   --faiss-python PYTHON  an interpreter with that faiss module and the packages
#                          that the tests need
#   --swig SWIG            a SWIG that fits that faiss module
#   --out FILE             also write the table to FILE
#
# For Debian, committed files are tested; for wheel and source, the files as they
# are. Logs are in build/matrix. The exit status is 0 if
# all rows passed.
set -euo pipefail

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fail() {
    echo "test_matrix.sh: $*" >&2
    exit 2
}

include='' prefix='' python='' swig='' out=''
rows=() wheel_pythons=()
while (($# > 0)); do
    case "$1" in
        --help | -h)
            print_usage
            exit
            ;;
        --faiss-include | --wheel-python | --faiss-prefix | --faiss-python | --swig | --out)
            (($# > 1)) || fail "$1 needs a value"
            case "$1" in
                --faiss-include) include="$2" ;;
                --wheel-python) wheel_pythons+=("$2") ;;
                --faiss-prefix) prefix="$2" ;;
                --faiss-python) python="$2" ;;
                --swig) swig="$2" ;;
                --out) out="$2" ;;
            esac
            shift 2
            ;;
        bookworm | trixie | forky | wheel | source)
            rows+=("$1")
            shift
            ;;
        *) fail "unknown argument '$1'; see --help" ;;
    esac
done
((${#rows[@]} > 0)) || rows=(bookworm trixie wheel source)
if [[ " ${rows[*]} " == *" wheel "* ]]; then
    [[ -d "$include" ]] || fail "the row wheel needs --faiss-include with a folder"
    include="$(cd "$include" && pwd)"
fi
if [[ " ${rows[*]} " == *" source "* ]]; then
    [[ -n "$prefix" && -n "$python" ]] ||
        fail "the row source needs --faiss-prefix and --faiss-python"
fi

matrix="$FAISS_EXT_ROOT/build/matrix"
mkdir -p "$matrix"

# Prints what the tools of a row are, for the table.
# shellcheck disable=SC2016 # runs in the row's shell
facts='
facts() {
    local python="$1" swig="$2"
    echo "FACT system $(. /etc/os-release; echo "$PRETTY_NAME" | sed "s| GNU/Linux||; s| (.*||")"
    echo "FACT faiss $(cd / && "$python" -c "import faiss; print(faiss.__version__)")"
    echo "FACT python $("$python" -c "import platform; print(platform.python_version())")"
    echo "FACT swig $("$swig" -version | sed -n "s/^SWIG Version //p")"
    echo "FACT compiler $(g++ --version | head -n 1 | sed "s/.* //; s/^/g++ /")"
}
'

# debian SUITE: a minimal system in a folder of its own, and test.sh there.
debian() {
    local suite="$1" root sources mirror script=/usr/share/debootstrap/scripts
    ((EUID == 0)) || fail "the row $suite needs root"
    install_deps matrix
    root="$(mktemp -d "/var/tmp/faiss_ext-$suite.XXXXXX")"
    # shellcheck disable=SC2064 # this root
    trap "rm -rf --one-file-system '$root'" EXIT
    chmod 755 "$root"
    sources=/etc/apt/sources.list.d/debian.sources
    [[ -e "$sources" ]] || sources=/etc/apt/sources.list
    mirror="$(sed -nE 's/^URIs: *([^ ]+).*/\1/p
        s/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' "$sources" | head -n 1)"
    script+="/$suite"
    [[ -e "$script" ]] || script="${script%/*}/sid" # a suite newer than debootstrap
    debootstrap --variant=minbase --include=ca-certificates,git,sudo \
        "$suite" "$root" "$mirror" "$script"
    # the host's way to the packages
    rm -f "$root/etc/apt/sources.list"
    sed "s/$(. /etc/os-release && echo "$VERSION_CODENAME")/$suite/g" "$sources" \
        >"$root$sources"
    cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -rL /etc/ssl/certs "$root/etc/ssl/" 2>/dev/null || true
    git -c safe.directory='*' clone -q "$FAISS_EXT_ROOT" "$root/root/faiss_ext"
    # shellcheck disable=SC2016 # runs in the new system
    unshare --mount --pid --fork bash -c '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            bash -c "$2"' _ "$root" "cd /root/faiss_ext && $facts
        FAISS_EXT_CMAKE_ARGS=-DFAISS_EXT_WERROR=ON ./scripts/test.sh &&
        ./scripts/build_deb.sh && apt-get install -y --no-install-recommends ./dist/*.deb &&
        ./debian/tests/readme && ./debian/tests/consumer &&
        facts /usr/bin/python3 swig" </dev/null
}

bookworm() { debian bookworm; }
trixie() { debian trixie; }
forky() { debian forky; }

# the tests' own needs, for an environment of its own
test_packages=(pytest pytest-xdist "hypothesis<7" scikit-learn scipy
    matplotlib tqdm mypy basedpyright pyyaml xxhash "dask[array,distributed]")

cpp_tests() {
    configure "$@" -DCMAKE_BUILD_TYPE=Release -DFAISS_EXT_BUILD_TESTS=ON \
        -DFAISS_EXT_WERROR=ON
    "$CMAKE" --build "$1" --parallel "$(build_jobs)"
    run_cpp_tests "$1"
}

# python_tests PYTHON ARGUMENT...
python_tests() {
    "$1" -m pytest -q -n "$(build_jobs)" -p no:cacheprovider \
        "$FAISS_EXT_ROOT/tests/python" "${@:2}"
}

wheel() {
    install_deps wheel test
    find_cmake
    local environment="$matrix/wheel-environment" library other
    rm -rf "$environment" "$matrix/wheel"
    "$FAISS_EXT_ROOT/scripts/build_wheel.sh" --faiss-include "$include" \
        --out "$matrix/wheel"
    "${PYTHON:-python3}" -m venv "$environment"
    "$environment/bin/python" -m pip --disable-pip-version-check -q install \
        "$matrix"/wheel/*.whl "${test_packages[@]}"
    for other in "${wheel_pythons[@]}"; do
        "$other" -m venv --clear "$environment-other"
        "$environment-other/bin/python" -m pip --disable-pip-version-check -q install \
            "$matrix"/wheel/*.whl scikit-learn
        "$environment-other/bin/python" "$FAISS_EXT_ROOT/scripts/run_page.py" "$FAISS_EXT_ROOT/README.md"
    done
    if [[ -r "$include/tests/test_index.py" ]] && is_at_least 1.15.0 "$(header_version "$include")"; then
        PYTHON="$environment/bin/python" \
            "$FAISS_EXT_ROOT/scripts/faiss_conformance.sh" --installed "$include"
    fi
    # (without what builds the package anew)
    (cd "$matrix" && python_tests "$environment/bin/python" \
        --ignore="$FAISS_EXT_ROOT/tests/python/test_packaging.py" \
        --ignore="$FAISS_EXT_ROOT/tests/python/test_demo.py")
    eval "$facts"
    facts "$environment/bin/python" \
        "$FAISS_EXT_ROOT/build/wheel/build/bin/swig"
    # Python has the newest patch release. C++ needs the one of the headers.
    library="$(cd / && "$FAISS_EXT_ROOT/build/wheel/build/bin/python" -c \
        'import faiss; print(faiss.__path__[0] + "/libfaiss.so")')"
    cpp_tests "$matrix/wheel-build" -DFAISS_EXT_FAISS_LIBRARY="$library" \
        -DFAISS_EXT_FAISS_INCLUDE_DIR="$include"
}

source_build() {
    install_deps wheel test
    find_cmake
    cpp_tests "$matrix/source-build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DFAISS_EXT_BUILD_PYTHON=ON -DPython3_EXECUTABLE="$python" \
        ${swig:+"-DSWIG_EXECUTABLE=$swig"}
    (cd "$matrix" && PYTHONPATH="$matrix/source-build/python" \
        python_tests "$python" \
        --ignore="$FAISS_EXT_ROOT/tests/python/test_packaging.py" \
        --ignore="$FAISS_EXT_ROOT/tests/python/test_demo.py")
    eval "$facts"
    facts "$python" "${swig:-swig}"
}

# Prints a row of the table from a log.
table_row() {
    local row="$1" log="$2" outcome="$3" fact
    fact() {
        sed -n "s/^FACT $1 //p" "$log" | tail -n 1
    }
    printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$row" \
        "$(fact system)" "$(fact faiss)" "$(fact python)" "$(fact swig)" \
        "$(fact compiler)" \
        "$(sed -n 's/^\([0-9]*% tests passed.*\)/\1/p' "$log" | tail -n 1)" \
        "$(sed -n 's/^=* *\(\([0-9]* failed, \)\?[0-9]* passed.*\) in [0-9].*/\1/p' "$log" | tail -n 1)" \
        "$outcome"
}

table=$'| | system | FAISS | Python | SWIG | compiler | C++ tests | Python tests | |\n|---|---|---|---|---|---|---|---|---|\n'
failed=0
for row in "${rows[@]}"; do
    log="$matrix/$row.log"
    echo "=== $row: $log"
    job="$row"
    [[ "$row" != source ]] || job=source_build
    # Not as a condition: that would switch off "set -e" inside.
    set +e
    (
        set -e
        "$job"
    ) >"$log" 2>&1 </dev/null
    status=$?
    set -e
    outcome=passed
    if ((status != 0)); then
        outcome="**failed**"
        failed=1
        tail -n 20 "$log"
    fi
    table+="$(table_row "$row" "$log" "$outcome")"$'\n'
done
printf '%s' "$table"
[[ -z "$out" ]] || printf '%s' "$table" >"$out"
exit "$failed"
