# Runs on MicroPython: imports one device test file, then runs the functions whose names come on stdin.
#
#     micropython runner.py MODULE PATH...
#
# After each name it prints "#T ok <us>" or the traceback and "#T fail"; an import that fails is "#T load".
import sys
import time


def run(module, name):
    start = time.ticks_us()
    try:
        getattr(module, name)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a test may raise SystemExit too
        sys.print_exception(error)
        print("#T fail")
    else:
        print("#T ok", time.ticks_diff(time.ticks_us(), start))


def main():
    sys.path[:0] = sys.argv[2:]
    try:
        module = __import__(sys.argv[1])
    except BaseException as error:
        sys.print_exception(error)
        print("#T load")
        return
    print("#T ready")
    while True:
        name = sys.stdin.readline().strip()
        if not name:
            return
        run(module, name)


main()
