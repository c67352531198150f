import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'

/*
 * What a new user has: the files that git knows (with what is not committed yet) in a new folder, and nothing installed. The
 * commands run on the PATH without this checkout's node_modules, so on the Node that the machine has itself.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
let clone: string

beforeAll(() => {
  clone = mkdtempSync(join(tmpdir(), 'thv-clone-'))
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: ROOT, encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
  for (const file of files) {
    mkdirSync(dirname(join(clone, file)), { recursive: true })
    cpSync(join(ROOT, file), join(clone, file), { verbatimSymlinks: true })
  }
})

afterAll(() => rmSync(clone, { recursive: true, force: true }))

function inClone(command: string, ...args: string[]) {
  const path = (process.env['PATH'] ?? '').split(':').filter((folder) => !folder.includes('node_modules'))
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|VITEST|THV_)/.test(name)))
  return spawnSync(command, args, { cwd: clone, encoding: 'utf8', env: { ...env, PATH: path.join(':') }, timeout: 240_000 })
}

describe('a fresh clone', () => {
  it('starts with one command, which installs what is missing and says so', () => {
    const first = inClone('npm', 'start')
    expect(first.stderr).not.toContain('EBADENGINE')
    expect(first.stdout).toContain('set-up: installing packages')
    expect(first.stdout).toContain('Try next:')
    expect(first.status).toBe(0)
  })

  it('installs nothing the second time', () => {
    const second = inClone('npm', 'start')
    expect(second.stdout).not.toContain('set-up:')
    expect(second.stdout).toContain('Try next:')
  })

  it('prints nine CRDs with npx thv crds', () => {
    const { stdout, status } = inClone('npx', 'thv', 'crds')
    expect(status).toBe(0)
    expect(parseAllDocuments(stdout).map((document) => document.toJSON().kind)).toEqual(Array(9).fill('CustomResourceDefinition'))
  })

  it('refuses an unknown kind with one clear line', () => {
    const { stderr, status } = inClone('npx', 'thv', 'crds', 'nope')
    expect(stderr).toMatch(/thv: there is no kind "nope"; there are MCPServer/)
    expect(status).toBe(2)
  })

  it('leaves no lock file that records where packages came from', () => {
    expect(inClone('grep', '-c', '"resolved": "http', 'package-lock.json').stdout.trim()).toBe('0')
  })
})
