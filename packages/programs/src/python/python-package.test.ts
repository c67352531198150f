import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createProcessGuard, type ProcessGuard } from '../process-guard.ts'
import type { InstallOptions } from '../run-installer.ts'
import { type MemoryLog, memoryLog, type TestFolder, testFolder } from '../testing/program-fixtures.ts'
import { checkPythonPackage, installPythonPackage, pythonCommand } from './python-package.ts'

const PACKAGE = { name: 'mcp-server-time', version: '1.0.0' }

describe('a package of PyPI', () => {
  let folder: TestFolder
  let log: MemoryLog
  let guard: ProcessGuard
  beforeEach(async () => {
    folder = await testFolder()
    log = memoryLog()
    guard = createProcessGuard(() => {})
  })
  afterEach(async () => {
    await guard.close()
    await folder[Symbol.asyncDispose]()
  })

  const options = (more: Partial<InstallOptions> = {}): InstallOptions => ({
    dataDir: join(folder.path, 'data'),
    env: { PATH: folder.path, UV_INDEX: 'somewhere', SECRET: 'no', PIP_CONFIG_FILE: '/dev/null', UV_NO_CONFIG: '1' },
    guard,
    log,
    signal: new AbortController().signal,
    ...more,
  })
  /** A stand-in for uv that makes these programs. */
  const uv = (programs: readonly string[], exit = 0, says = '') =>
    folder.write(
      'uv',
      `#!${process.execPath}
const fs = require('node:fs')
fs.appendFileSync(${JSON.stringify(join(folder.path, 'calls'))}, JSON.stringify([process.argv.slice(2), process.env]) + '\\n')
fs.mkdirSync(process.env.UV_TOOL_BIN_DIR, { recursive: true })
for (const name of ${JSON.stringify(programs)}) fs.writeFileSync(process.env.UV_TOOL_BIN_DIR + '/' + name, '#!/bin/sh', { mode: 0o755 })
console.error(${JSON.stringify(says)})
process.exitCode = ${exit}
`,
      0o755,
    )
  const calls = async () => (await readFile(join(folder.path, 'calls'), 'utf8')).trim().split('\n')

  it('is installed once, and its own program runs', async () => {
    await uv(['mcp-server-time', 'other'])
    const [place] = await Promise.all([installPythonPackage(PACKAGE, options()), installPythonPackage(PACKAGE, options())])
    expect(await pythonCommand(place, PACKAGE, ['-x'])).toEqual({ file: join(place, 'bin', 'mcp-server-time'), args: ['-x'] })
    const [args, env] = JSON.parse((await calls())[0] ?? '') as [string[], Record<string, string>]
    expect(args).toEqual(['tool', 'install', '--no-progress', 'mcp-server-time==1.0.0'])
    expect(env).toMatchObject({ UV_INDEX: 'somewhere' })
    expect(env).not.toHaveProperty('SECRET')
    expect(await calls()).toHaveLength(1)
  })

  it('takes the only program, and refuses to guess among several', async () => {
    await uv(['time'])
    const one = await installPythonPackage(PACKAGE, options())
    expect((await pythonCommand(one, PACKAGE, [])).file).toBe(join(one, 'bin', 'time'))
    await uv(['a', 'b'])
    const two = await installPythonPackage({ ...PACKAGE, version: '2.0.0' }, options())
    await expect(pythonCommand(two, PACKAGE, [])).rejects.toThrow('it has a, b')
  })

  it('is tried again after an install that failed', async () => {
    await uv(['mcp-server-time'], 2, 'error: No solution found\n  cause: Because it was not found in the registry')
    const error = await installPythonPackage(PACKAGE, options()).catch((e: unknown) => e)
    expect(isThvError(error, 'package_install_failed')).toBe(true)
    expect(String(error)).toContain('uv ended with code 2: error: No solution found; cause: Because it was not found in the registry;')
    await uv(['mcp-server-time'])
    await expect(installPythonPackage(PACKAGE, options())).resolves.toContain('mcp-server-time@1.0.0')
  })

  it('needs uv, until it is there', async () => {
    const error = await checkPythonPackage(PACKAGE, options()).catch((e: unknown) => e)
    expect(isThvError(error, 'program_missing')).toBe(true)
    expect(String(error)).toContain('pip install uv')
    await uv(['mcp-server-time'])
    await installPythonPackage(PACKAGE, options())
    await expect(checkPythonPackage(PACKAGE, options({ env: {} }))).resolves.toBeUndefined()
  })
})
