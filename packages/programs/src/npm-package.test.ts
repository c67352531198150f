import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { chooseBin, installNpmPackage, npmCommand } from './npm-package.ts'
import { createProcessGuard, type ProcessGuard } from './process-guard.ts'
import { type InstallOptions, runInstaller } from './run-installer.ts'
import { type MemoryLog, memoryLog, type TestFolder, testFolder } from './testing/program-fixtures.ts'

const PKG = { name: '@scope/server', version: '1.2.3' }

/** Does what npm does as far as anybody looks, and notes how it was called. */
const FAKE_NPM = `#!${process.execPath}
const fs = require('node:fs'), path = require('node:path')
const calls = path.join(__dirname, 'calls.jsonl')
fs.appendFileSync(calls, JSON.stringify({ args: process.argv.slice(2), cwd: process.cwd(), env: process.env }) + '\\n')
if (process.env.npm_config_mode === 'fail') { console.error('npm error code E404\\nnpm error 404 https://me:hunt@er2@registry.test/x'); process.exit(1) }
const { dependencies } = JSON.parse(fs.readFileSync('package.json', 'utf8'))
const [[name, version]] = Object.entries(dependencies)
const root = path.join('node_modules', name)
const finish = () => {
  fs.mkdirSync(root, { recursive: true })
  fs.writeFileSync(path.join(root, 'package.json'), JSON.stringify({ name, version, bin: { server: 'dist/index.js' } }))
  fs.mkdirSync(path.join(root, 'dist'))
  fs.writeFileSync(path.join(root, 'dist', 'index.js'), '#!/usr/bin/env node\\n')
}
if (process.env.npm_config_mode === 'hang') setInterval(() => {}, 1000)
else setTimeout(finish, 50)
`

describe('installNpmPackage', () => {
  let folder: TestFolder
  let log: MemoryLog
  let guard: ProcessGuard
  const stop = { current: new AbortController() }
  beforeEach(async () => {
    folder = await testFolder()
    log = memoryLog()
    stop.current = new AbortController()
    guard = createProcessGuard((message) => log.warn(message))
    await folder.write('npm', FAKE_NPM, 0o755)
  })
  afterEach(async () => {
    await guard.close()
    await folder[Symbol.asyncDispose]()
  })

  const options = (more: Partial<InstallOptions> = {}): InstallOptions => ({
    dataDir: join(folder.path, 'data'),
    env: { PATH: folder.path, SECRET: 'hunter2', npm_config_registry: 'r' },
    guard,
    log,
    signal: stop.current.signal,
    ...more,
  })
  const calls = async () =>
    (await readFile(join(folder.path, 'calls.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))

  it('installs once for any number of callers, and leaves nothing half done', async () => {
    const folders = await Promise.all([1, 2, 3].map(() => installNpmPackage(PKG, options())))
    expect(new Set(folders)).toEqual(new Set([join(folder.path, 'data', 'npm', '@scope+server@1.2.3')]))
    expect(await installNpmPackage(PKG, options())).toBe(folders[0])
    expect(await calls()).toHaveLength(1)
    expect(await readdir(join(folder.path, 'data', 'npm'))).toEqual(['@scope+server@1.2.3'])
    expect(log.text()).toMatch(/installing @scope\/server@1\.2\.3[\s\S]*installed @scope\/server@1\.2\.3/)
  })

  it('gives npm what an installer needs, and none of our secrets', async () => {
    await installNpmPackage(PKG, options())
    const [{ args, env }] = await calls()
    expect(args.slice(0, 2)).toEqual(['install', '--prefix'])
    expect(args).toContain('--omit=dev')
    expect(env).toMatchObject({ npm_config_registry: 'r' })
    expect(env).not.toHaveProperty('SECRET')
  })

  it('says that npm failed, leaves no folder, and tries again when asked again', async () => {
    const failing = options({ env: { PATH: folder.path, npm_config_mode: 'fail' } })
    const error = await installNpmPackage(PKG, failing).catch((e: unknown) => e)
    expect(isThvError(error, 'package_install_failed')).toBe(true)
    expect(String(error)).toContain('@scope/server@1.2.3 could not be installed: npm ended with code 1')
    for (const text of [String(error), log.text()])
      expect([text.includes('//registry.test/x'), /hunt|er2/.test(text)]).toEqual([true, false])
    expect(await readdir(join(folder.path, 'data', 'npm'))).toEqual([])
    await expect(installNpmPackage(PKG, options())).resolves.toContain('@scope+server@1.2.3')
  })

  it('ends npm when told to stop, or when it takes too long', async () => {
    const hanging = { env: { PATH: folder.path, npm_config_mode: 'hang' } }
    await expect(installNpmPackage(PKG, options({ ...hanging, limitMs: 300 }))).rejects.toThrow('npm was ended by SIGTERM')
    const installing = installNpmPackage(PKG, options(hanging))
    setTimeout(() => stop.current.abort(new Error('stopped')), 100)
    await expect(installing).rejects.toThrow('stopped')
    expect(await readdir(join(folder.path, 'data', 'npm'))).toEqual([])
  })

  it('ends npm when told to stop while it is being started, and starts none after that', async () => {
    const hanging = { env: { PATH: folder.path, npm_config_mode: 'hang' } }
    const watch = (pid: number) => {
      guard.watch(pid)
      stop.current.abort(new Error('stopped'))
    }
    await expect(installNpmPackage(PKG, options({ ...hanging, guard: { ...guard, watch } }))).rejects.toThrow('stopped')
    const late = { command: { file: 'npm', args: [] }, cwd: folder.path, env: {} }
    await expect(runInstaller('server', late, options({ guard: { ...guard, watch: () => expect.unreachable() } }))).rejects.toThrow(
      'stopped',
    )
  })

  it('says that npm is missing', async () => {
    const error = await installNpmPackage(PKG, options({ env: { PATH: '/nowhere' } })).catch((e: unknown) => e)
    expect(isThvError(error, 'program_missing')).toBe(true)
  })

  it('runs the program of the package with the Node that runs us', async () => {
    const installed = await installNpmPackage(PKG, options())
    const bin = join(installed, 'node_modules', '@scope', 'server', 'dist', 'index.js')
    expect(await npmCommand(installed, PKG, ['a'])).toEqual({ file: process.execPath, args: [bin, 'a'] })
    await writeFile(bin, '#!/usr/bin/env -S node --no-warnings\n')
    expect(await npmCommand(installed, PKG, [])).toEqual({ file: process.execPath, args: ['--no-warnings', bin] })
    await writeFile(bin, '#!/bin/sh\n')
    expect(await npmCommand(installed, PKG, ['a'])).toEqual({ file: bin, args: ['a'] })
    await writeFile(bin, 'console.log(1)\n')
    expect(await npmCommand(installed, PKG, [])).toEqual({ file: process.execPath, args: [bin] })
  })

  it('refuses a package that is another version, has no manifest, or points out of itself', async () => {
    const installed = await installNpmPackage(PKG, options())
    const manifest = join(installed, 'node_modules', '@scope', 'server', 'package.json')
    await writeFile(manifest, JSON.stringify({ version: '9.9.9', bin: 'x.js' }))
    await expect(npmCommand(installed, PKG, [])).rejects.toThrow('another version')
    await writeFile(manifest, JSON.stringify({ version: '1.2.3', bin: '../../../../evil.js' }))
    await expect(npmCommand(installed, PKG, [])).rejects.toThrow('lies outside of its package')
    await writeFile(manifest, '{')
    await expect(npmCommand(installed, PKG, [])).rejects.toThrow('not where npm should have put it')
    await mkdir(join(folder.path, 'empty'))
    await expect(npmCommand(join(folder.path, 'empty'), PKG, [])).rejects.toThrow('not where npm should have put it')
  })
})

describe('chooseBin', () => {
  it.each([
    ['server', './a.js', './a.js'],
    ['@scope/server', './a.js', './a.js'],
    ['server', { anything: 'a.js' }, 'a.js'],
    ['@scope/server', { other: 'b.js', server: 'a.js' }, 'a.js'],
    ['server', { x: 'same.js', y: 'same.js' }, 'same.js'],
  ])('chooses for %s from %j', (name, bin, chosen) => {
    expect(chooseBin(name, bin)).toBe(chosen)
  })

  it.each([[undefined], [{}], [{ a: 'a.js', b: 'b.js' }], [''], [7]])('refuses %j', (bin) => {
    expect(() => chooseBin('server', bin)).toThrow(/has no program to run/)
  })
})
