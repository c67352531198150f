import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'

/*
 * The view of a new user: the files that git knows (with what is not committed yet) in a new folder, and nothing installed. The
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
    // Recursive, because one of them is a link to a folder.
    cpSync(join(ROOT, file), join(clone, file), { verbatimSymlinks: true, recursive: true })
  }
})

afterAll(() => rmSync(clone, { recursive: true, force: true }))

function environment(): NodeJS.ProcessEnv {
  const path = (process.env['PATH'] ?? '').split(':').filter((folder) => !folder.includes('node_modules'))
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|VITEST|THV_)/.test(name)))
  return { ...env, PATH: path.join(':') }
}

function inClone(command: string, ...args: string[]) {
  return spawnSync(command, args, { cwd: clone, encoding: 'utf8', env: environment(), timeout: 600_000, maxBuffer: 16 * 1024 * 1024 })
}

/** `npm start`, until it says that all is ready; then `use`, then Ctrl-C. Returns what it printed. */
async function whileStarted(use: () => void): Promise<string> {
  // A group of its own, so that the signal reaches all of it, as Ctrl-C in a terminal does.
  const child = spawn('npm', ['start'], { cwd: clone, env: environment(), detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit')
  const printed: string[] = []
  const ready = Promise.withResolvers<void>()
  const take = (chunk: Buffer) => {
    printed.push(chunk.toString())
    if (printed.join('').includes('Ctrl-C stops it.')) ready.resolve()
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  void ended.then(() => ready.reject(new Error(`npm start ended: ${printed.join('')}`)))
  try {
    await ready.promise
    use()
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT')
    await ended
  }
  return printed.join('')
}

describe('a fresh clone', () => {
  it('starts with one command, which installs what is missing and says so', async () => {
    const printed = await whileStarted(() => {
      const tools = inClone('npx', 'thv', 'tools', 'everything')
      expect(tools.stdout).toContain('echo')
      const call = inClone('npx', 'thv', 'call', 'everything', 'echo', 'message=hello')
      expect(call.stdout).toContain('hello')
      expect(call.status).toBe(0)
      // The tool config of the other one: two tools, one of them under another name.
      expect(inClone('npx', 'thv', 'call', 'everything-http', 'say', 'message=hello').stdout).toContain('hello')
      expect(inClone('npx', 'thv', 'call', 'everything-http', 'echo', 'message=hello').status).toBe(2)
      // The virtual server over both and the server of the platform itself.
      const joined = inClone('npx', 'thv', 'tools', 'all-in-one').stdout
      for (const name of ['everything_echo', 'everything-http_say', 'platform-tools_list_servers', 'recommend_server'])
        expect(joined).toContain(name)
      expect(inClone('npx', 'thv', 'describe', 'virtualmcpserver', 'all-in-one').stdout).toMatch(/Ready +True/)
      const recommended = inClone('npx', 'thv', 'call', 'all-in-one', 'recommend_server', 'task=browser')
      expect(recommended.stdout).toMatch(/try \S*playwright\S* .* 4 servers are declared/)
    })
    expect(printed).toContain('npx thv call all-in-one recommend_server task=browser')
    expect(printed).not.toContain('EBADENGINE')
    expect(printed).toContain('set-up: installing packages')
    expect(printed).toContain('npx thv call everything echo message=hello')
  })

  it('installs nothing the second time', async () => {
    expect(await whileStarted(() => {})).not.toContain('set-up:')
  })

  it('prints nine CRDs with npx thv crds', () => {
    const { stdout, status } = inClone('npx', 'thv', 'crds')
    expect(status).toBe(0)
    expect(parseAllDocuments(stdout).map((document) => document.toJSON().kind)).toEqual(Array(9).fill('CustomResourceDefinition'))
  })

  it('refuses an unknown kind with one clear line', () => {
    const { stderr, status } = inClone('npx', 'thv', 'crds', 'nope')
    expect(stderr).toMatch(/thv: unknown kind "nope"; available kinds are MCPServer/)
    expect(status).toBe(2)
  })

  it('leaves no lock file that records where packages came from', () => {
    expect(inClone('grep', '-c', '"resolved": "http', 'package-lock.json').stdout.trim()).toBe('0')
  })
})
