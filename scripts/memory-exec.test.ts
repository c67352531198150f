import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const MODULE = new URL('./memory-exec.mjs', import.meta.url).href
const PRINT = `console.log(JSON.stringify({ pid: process.pid, args: process.argv.slice(2), options: process.execArgv, env: process.env }))`
/** Of one that starts itself again and again. */
const LIMIT_MS = 60_000

interface Printed {
  readonly pid: number
  readonly args: readonly string[]
  readonly options: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

describe('a program that takes the memory settings', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'thv-exec-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  async function run(call: string, env: Record<string, string> = {}): Promise<Printed & { child: number | undefined }> {
    const main = join(folder, 'main.mjs')
    writeFileSync(main, `import { execWithMemorySettings } from ${JSON.stringify(MODULE)}\n${call}\n${PRINT}`)
    const child: ChildProcess = spawn(process.execPath, ['--no-deprecation', main, 'up', '--port', '1'], {
      env: { KEPT: 'yes', ...env },
      timeout: LIMIT_MS,
    })
    const [out, err, [code]] = await Promise.all([
      text(child.stdout as NodeJS.ReadableStream),
      text(child.stderr as NodeJS.ReadableStream),
      once(child, 'exit'),
    ])
    expect({ err, code }).toEqual({ err: '', code: 0 })
    return { ...(JSON.parse(out) as Printed), child: child.pid }
  }

  it.runIf(process.platform === 'linux')('stays the same process, with the same arguments and options', async () => {
    const { pid, child, args, options, env } = await run('execWithMemorySettings()')
    expect({ pid, args, options }).toEqual({ pid: child, args: ['up', '--port', '1'], options: ['--no-deprecation'] })
    expect(env).toEqual({ KEPT: 'yes', ...MEMORY_SETTINGS })
  })

  it.runIf(process.platform === 'linux')('keeps what the user has set', async () => {
    const own = { NODE_OPTIONS: '--max-semi-space-size=16', MALLOC_ARENA_MAX: '2' }
    expect((await run('execWithMemorySettings()', own)).env).toEqual({ KEPT: 'yes', ...MEMORY_SETTINGS, ...own })
  })

  it.runIf(process.platform === 'linux')('starts again only once, where the system takes a setting away each time', async () => {
    const { pid, child, env } = await run('delete process.env.MALLOC_ARENA_MAX\nexecWithMemorySettings()')
    expect(pid).toBe(child)
    expect(env).toEqual({ KEPT: 'yes', ...MEMORY_SETTINGS, MALLOC_ARENA_MAX: undefined })
  })

  it('goes on where a process cannot be replaced', async () => {
    const fails = 'execWithMemorySettings({ execve: () => { throw new Error("not here") } })'
    for (const call of [fails, 'process.execve = undefined\nexecWithMemorySettings()'])
      expect((await run(call)).env).toEqual({ KEPT: 'yes' })
  })
})
