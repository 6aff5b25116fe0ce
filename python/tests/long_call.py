"""A C call of any length: the risk of a softmax layer by simulation. For the tests of what surrounds a call."""

from finetti._core import Table, Watch, check, error, ffi, lib


def simulate(samples, progress=None, watched=True):
    """The risk, with a Watch around the call (or, watched=False, without any way to hear from it)."""
    err = error()
    made = ffi.new("fin_task **")
    check(lib.fin_task_create(made, lib.fin_task_find(b"slr"), ffi.NULL, ffi.NULL, 1, 0, err), err)
    task = ffi.gc(made[0], lib.fin_task_destroy)
    table = Table(ffi.addressof(lib, "fin_risk_table"), "fin_risk_settings")
    settings = table.make({"samples": samples, "method": "simulation"})
    report = ffi.new("fin_risk_report *")
    given = (task, lib.fin_form_find(b"softmax"), ffi.NULL, ffi.NULL, settings)
    if watched:
        with Watch(progress) as watch:
            watch.check(lib.fin_risk(*given, watch.pointer, report, watch.err))
    else:
        check(lib.fin_risk(*given, ffi.NULL, report, err), err)
    return report.risk.value


ENDLESS = 1 << 40
