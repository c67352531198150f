import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { processStart } from '@thv/programs/process-identity'
import { describe, expect, test, vi } from 'vitest'
import { guardedFolderPrefix, startGuard } from './process-guard.ts'

describe('process guard', () => {
  test('after SIGKILL of its owner no guarded process, no grandchild and no folder is left', async () => {
    const folder = mkdtempSync(join(tmpdir(), guardedFolderPrefix))
    const guardModule = fileURLToPath(new URL('./process-guard.ts', import.meta.url))
    const owner = spawn(process.execPath, ['--input-type=module', '-e', ownerScript], {
      env: { ...process.env, GUARD: guardModule, FOLDER: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const line = await nextLine(owner.stdout)
    const pids = JSON.parse(line) as number[]
    expect(pids).toHaveLength(3)
    expect(pids.map(processStart)).not.toContain(undefined)
    owner.kill('SIGKILL')
    await vi.waitFor(() => expect(pids.map(processStart)).toEqual([undefined, undefined, undefined]), 10_000)
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), 10_000)
  })

  test('close ends what is watched, spares what is forgotten', async () => {
    const [watched, forgotten] = [sleeper(), sleeper()]
    const guard = startGuard()
    for (const { pid = 0 } of [watched, forgotten]) guard.watch(pid)
    guard.forget(forgotten.pid ?? 0)
    await guard.close()
    await vi.waitFor(() => expect(processStart(watched.pid ?? 0)).toBeUndefined(), 10_000)
    expect(processStart(forgotten.pid ?? 0)).toBeDefined()
    forgotten.kill('SIGKILL')
  })

  test('it removes only folders of its own kind', async () => {
    const precious = mkdtempSync(join(tmpdir(), 'precious-'))
    const guard = startGuard()
    guard.removeAtEnd(precious)
    await guard.close()
    expect(existsSync(precious)).toBe(true)
    rmSync(precious, { recursive: true })
  })
})

/** Starts a shell with a child of its own, guarded, and tells all process ids. */
const ownerScript = `
  import { spawn } from 'node:child_process'
  const { startGuard } = await import(process.env.GUARD)
  const guard = startGuard()
  guard.removeAtEnd(process.env.FOLDER)
  const shell = spawn('sh', ['-c', 'sleep 600 & echo $!; wait'], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  guard.watch(shell.pid)
  shell.stdout.on('data', (text) => console.log(JSON.stringify([shell.pid, Number(text), guard.pid])))
`

function sleeper() {
  return spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
}

function nextLine(stream: NodeJS.ReadableStream): Promise<string> {
  const lines = createInterface({ input: stream })
  return new Promise((resolve) => lines.once('line', resolve))
}
