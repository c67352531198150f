import { spawn } from 'node:child_process'
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { findRunning } from '../local-platform/running-platform.ts'
import type { ProgramEnv } from '../program.ts'
import { plainText } from '../text/plain-text.ts'
import { LOG_FILE } from './platform-log.ts'
import { programPath } from './platform-parts.ts'
import { createStepView } from './step-view.ts'

const STARTS_WITHIN_MS = 60_000
const LOOK_MS = 50
const MAX_SAID = 4_096

/** Starts the platform in a process of its own, in the background. Resolves when its API server answers. */
export async function startDetached(folder: string, { flags, env }: { flags: readonly string[]; env: ProgramEnv }): Promise<void> {
  env.err(`Starting the platform in ${folder}\n`)
  const logFile = join(folder, LOG_FILE)
  const log = openSync(logFile, 'a', 0o600)
  const before = statSync(logFile).size
  const args = [programPath(), 'up', '--bare', '--data-dir', folder, ...flags]
  const child = spawn(process.execPath, args, { cwd: env.cwd, env: env.variables, detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  let end: string | undefined
  child.once('error', (error) => {
    end = error.message
  })
  child.once('exit', (code, signal) => {
    end = `it ended with ${signal ?? `code ${code}`}`
  })
  const deadline = systemClock.monotonic() + STARTS_WITHIN_MS
  const steps = createStepView(env)
  let step = 'Starting a process in the background'
  steps.step(step)
  while (findRunning(folder)?.pid !== child.pid) {
    const next = stepSince(logFile, before)
    if (next !== undefined && next !== step) steps.step(next)
    step = next ?? step
    if (end !== undefined || systemClock.monotonic() > deadline || env.signal?.aborted) steps.end('failed')
    if (end !== undefined)
      throw new ThvError('process_start_failed', saidSince(logFile, before) ?? `the platform did not start: ${end} (see ${logFile})`)
    if (systemClock.monotonic() > deadline || env.signal?.aborted) {
      child.kill('SIGTERM')
      throw new ThvError('timeout', `the platform did not start within ${STARTS_WITHIN_MS / 1_000} s: see ${logFile}`)
    }
    await systemClock.sleep(LOOK_MS)
  }
  steps.end()
  child.unref()
}

/** The last thing that it said to people, not to the log. */
function saidSince(file: string, offset: number): string | undefined {
  const line = linesSince(file, offset).findLast((each) => each.startsWith('thv: '))
  return line && plainText(line.slice('thv: '.length))
}

/** The step that its log names last. */
function stepSince(file: string, offset: number): string | undefined {
  const line = linesSince(file, offset).findLast((each) => each.includes('"msg":"step"') && each.endsWith('}'))
  if (line === undefined) return undefined
  const { step } = JSON.parse(line) as { step?: unknown }
  return plainText(step) || undefined
}

function linesSince(file: string, offset: number): string[] {
  const size = statSync(file).size
  const start = Math.max(offset, size - MAX_SAID)
  const bytes = Buffer.alloc(Math.max(0, size - start))
  const open = openSync(file, 'r')
  try {
    readSync(open, bytes, 0, bytes.length, start)
  } finally {
    closeSync(open)
  }
  return bytes.toString('utf8').split('\n')
}
