import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

type Packages = Record<string, Record<string, unknown>>

const SCRIPTS = ['setup.mjs', 'installed-packages.mjs'].map((name) => fileURLToPath(new URL(name, import.meta.url)))
const OTHER_OS = process.platform === 'win32' ? 'linux' : 'win32'
const LOCKED: Packages = {
  '': { name: 'project' },
  'apps/x': { name: 'x', version: '1.0.0' },
  'node_modules/x': { resolved: 'apps/x', link: true },
  'node_modules/a': { version: '1.2.3', integrity: 'sha512-a' },
  'node_modules/a/node_modules/b': { version: '2.0.0', integrity: 'sha512-b', dev: true },
  'node_modules/native': { version: '1.0.0', optional: true, os: [process.platform], cpu: process.arch },
  'node_modules/foreign': { version: '1.0.0', optional: true, os: [OTHER_OS], cpu: [process.arch] },
  'node_modules/of-foreign': { version: '1.0.0', optional: true },
  'node_modules/not-here': { version: '1.0.0', optional: true, os: [`!${process.platform}`] },
}
const INSTALLED = Object.keys(LOCKED).filter(
  (path) => !['', 'node_modules/foreign', 'node_modules/of-foreign', 'node_modules/not-here'].includes(path),
)

describe('the set-up step', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'thv-setup-'))
    for (const script of SCRIPTS) cpSync(script, join(folder, 'scripts', script.slice(dirname(script).length)), { recursive: true })
    writeJson('package-lock.json', { packages: LOCKED })
    // Instead of npm: notes that it was called, and leaves what an install leaves.
    mkdirSync(join(folder, 'bin'))
    const npm = join(folder, 'bin', 'npm')
    writeFileSync(npm, '#!/bin/sh\necho "$@" >> npm.log\nmkdir -p node_modules\n')
    chmodSync(npm, 0o755)
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  function writeJson(path: string, value: object): void {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), JSON.stringify(value))
  }

  /** As `npm ci` leaves it. */
  function installed(change: (packages: Packages) => void = () => {}): void {
    const packages = Object.fromEntries(INSTALLED.map((path) => [path, { ...LOCKED[path] }]))
    for (const path of INSTALLED) mkdirSync(join(folder, path), { recursive: true })
    change(packages)
    writeJson('node_modules/.package-lock.json', { packages })
  }

  /** How often npm was called until now. */
  function setUp(): number {
    const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH']}` }
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'scripts/setup.mjs')], { cwd: folder, env, encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    const log = join(folder, 'npm.log')
    return existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n').length : 0
  }

  it('installs the packages of a fresh clone once, and again when other ones are locked', () => {
    expect([setUp(), setUp()]).toEqual([1, 1])
    writeJson('package-lock.json', { packages: { ...LOCKED, 'node_modules/c': { version: '1.0.0' } } })
    expect([setUp(), setUp()]).toEqual([2, 2])
  })

  it('installs nothing where npm ci was run by hand', () => {
    installed()
    expect([setUp(), setUp()]).toEqual([0, 0])
  })

  it.each<[string, (packages: Packages) => void]>([
    ['another version', (packages) => Object.assign(packages['node_modules/a'] ?? {}, { version: '1.2.4' })],
    ['another content', (packages) => Object.assign(packages['node_modules/a'] ?? {}, { integrity: 'sha512-c' })],
    ['no development packages', (packages) => delete packages['node_modules/a/node_modules/b']],
    ['no package for this machine', (packages) => delete packages['node_modules/native']],
    ['a link that leads elsewhere', (packages) => Object.assign(packages['node_modules/x'] ?? {}, { resolved: 'apps/y' })],
    ['a package too many', (packages) => Object.assign(packages, { 'node_modules/more': { version: '1.0.0' } })],
    ['a package whose folder is gone', () => rmSync(join(folder, 'node_modules/a'), { recursive: true })],
  ])('installs where there is %s', (_, change) => {
    installed(change)
    expect(setUp()).toBe(1)
  })

  it('installs where an install broke off', () => {
    installed()
    rmSync(join(folder, 'node_modules/.package-lock.json'))
    expect(setUp()).toBe(1)
    installed()
    rmSync(join(folder, 'node_modules/.toolhive-setup'))
    writeFileSync(join(folder, 'node_modules/.package-lock.json'), '{"packages":')
    expect(setUp()).toBe(2)
  })
})
