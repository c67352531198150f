import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const limitMs = 30_000

/**
 * Stops a process and returns when it stands still. SIGSTOP alone only asks for that: each thread stops when it is next
 * scheduled, and a server may answer requests for some milliseconds more.
 */
export function freezeProcess(pid: number): void {
  process.kill(pid, 'SIGSTOP')
  const deadline = performance.now() + limitMs
  while (!threadStates(pid).every((state) => state === 'T')) {
    if (performance.now() > deadline) throw new Error(`process ${pid} was not stopped within ${limitMs} ms`)
    // Sleeps without giving up the caller's turn, as freezing is a synchronous act for a test.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
  }
}

export function unfreezeProcess(pid: number): void {
  process.kill(pid, 'SIGCONT')
}

function threadStates(pid: number): string[] {
  if (process.platform !== 'linux') return [spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout.slice(0, 1)]
  return readdirSync(`/proc/${pid}/task`).map((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  })
}
