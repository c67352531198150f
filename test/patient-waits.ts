import { patientOptions, type WaitOptions } from '@thv/testkit/run/patience'
import { expect, vi } from 'vitest'

/*
 * Loaded before every test file: no wait gives up before a minute, whatever limit it names. Limits that are long enough on a quiet machine
 * are not on one whose cores are shared with other work.
 */

type Wait = (look: never, options?: never) => unknown

const PATIENT = Symbol.for('thv.patient')

/** The module is loaded again for each file, the functions stay. */
function patient<W extends Wait>(wait: W): W {
  if (PATIENT in wait) return wait
  const longer = (look: never, options: WaitOptions) => wait(look, patientOptions(options) as never)
  return Object.assign(longer, { [PATIENT]: true }) as unknown as W
}

vi.waitFor = patient(vi.waitFor)
vi.waitUntil = patient(vi.waitUntil)
expect.poll = patient(expect.poll)
