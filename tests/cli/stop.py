"""Programs that are told to stop: stop(words) for what the shell cannot (its background jobs ignore SIGINT)."""
import os, signal, subprocess

TICKS = os.sysconf("SC_CLK_TCK")


def used(pid):
    """Seconds of processor time that a process has taken, all its threads together."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(fields[11]) + int(fields[12])) / TICKS


def stop(words, send=signal.SIGINT, after=0.1):
    """Runs finetti; after so many seconds of its processor time, on a busy machine too, it gets the signal, and a minute
    to end. Returns exit code, output, messages and whether it was still running then."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    p = subprocess.Popen([os.environ["FINETTI"], *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    told = False
    while True:
        try:
            out, err = p.communicate(timeout=60 if told else 0.02)
            return p.returncode, out, err, told
        except subprocess.TimeoutExpired:
            if told:
                p.kill()
                raise AssertionError((*words, "does not stop")) from None
            if used(p.pid) >= after:
                p.send_signal(send)
                told = True


def cancelled(*words, send=signal.SIGINT, **more):
    """The same, and it must have been cancelled, in one line, with the exit code 128 + signal. Returns that."""
    code, out, err, told = stop(words, send, **more)
    assert told and code == 128 + send and out == b"" and err.count(b"\n") == 1 and b"cancelled" in err, (words, code, out, err)
    return err
