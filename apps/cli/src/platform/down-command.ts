import { sendSignal } from '@thv/cluster/node/process/process-table'
import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { type PlatformFlags, platformFolder } from '../local-platform/platform-folder.ts'
import { findRunning, isRunning } from '../local-platform/running-platform.ts'
import type { ProgramEnv } from '../program.ts'

/** Longer than the platform takes at most. */
const ENDS_WITHIN_MS = 30_000
const KILLED_WITHIN_MS = 5_000
const LOOK_MS = 50

/** thv down: ends the platform of a data folder and waits for it. Its objects stay for the next start. */
export async function runDown(options: PlatformFlags, env: ProgramEnv): Promise<void> {
  const folder = platformFolder(options, env)
  const running = findRunning(folder)
  if (running === undefined) {
    env.err(`No platform is running in ${folder}.\n`)
    return
  }
  const gone = async (withinMs: number) => {
    const deadline = systemClock.monotonic() + withinMs
    while (isRunning(running)) {
      if (systemClock.monotonic() > deadline) return false
      await systemClock.sleep(LOOK_MS, env.signal)
    }
    return true
  }
  sendSignal(running.pid, 'SIGTERM')
  if (await gone(ENDS_WITHIN_MS)) {
    env.out(`Stopped the platform in ${folder}.\n`)
    return
  }
  // The guards of its pods end their processes when it is gone.
  sendSignal(running.pid, 'SIGKILL')
  if (!(await gone(KILLED_WITHIN_MS))) throw new ThvError('timeout', `process ${running.pid} did not exit; kill it manually`)
  env.out(`The platform in ${folder} did not stop within ${ENDS_WITHIN_MS / 1_000} s and was killed.\n`)
}
