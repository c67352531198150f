import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isLoopback, listenAddress } from './serve/listen-address.ts'
import { startLines } from './serve/start-lines.ts'
import { recordingLog, runRegistry, startRegistry } from './testing/run-registry.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-program-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

const GOOD = 'sources: [{name: a, managed: {}}]\nregistries: [{name: r, sources: [a]}]\nauth: {mode: anonymous}\n'
const DATABASE = 'database: {host: db.example.com, user: app, database: registry}\n'

function file(text: string): string {
  const path = join(folder, 'config.yaml')
  writeFileSync(path, text)
  return path
}

describe('thv-registry-api', () => {
  it('prints help without a command, and for every command', async () => {
    expect((await runRegistry([])).out).toContain('serve')
    expect((await runRegistry(['--help'])).out).toContain('validate')
    expect((await runRegistry(['serve', '--help'])).out).toContain('THV_REGISTRY_ADDRESS')
    expect((await runRegistry(['migrate'])).out).toContain('down')
    expect((await runRegistry(['help', 'migrate'])).code).toBe(0)
    expect((await runRegistry(['--version'])).out).toMatch(/^\d+\.\d+\.\d+/)
  })

  it.each([
    [['serv'], /unknown command 'serv'/],
    [['serve', 'now'], /too many arguments.*: now; /],
    [['serve', '--adress', ':1'], /unknown option '--adress'/],
    [['serve', '--auth-mode', 'basic'], /argument 'basic' is invalid. Allowed choices are anonymous, oauth/],
    [['serve', '--address', '8080'], /--address: "8080" is not HOST:PORT or :PORT/],
    [['serve', '--address', ':65536'], /--address: ":65536" is not HOST:PORT/],
    [['serve', '--internal-address', 'registry.example.com:80'], /is not an address of this machine/],
    [['validate'], /required option '--config <file>' not specified/],
    [['migrate', 'up'], /required option '--config <file>' not specified/],
    [['version', '--format', 'xml'], /Allowed choices are text, json/],
  ])('%j is a usage error', async (args, message) => {
    const { error } = await runRegistry([...args])
    expect(error?.code).toBe('usage')
    expect(error?.message).toMatch(message)
  })

  it('takes addresses from variables', async () => {
    const { error } = await runRegistry(['serve', '--data-dir', folder], { env: { THV_REGISTRY_ADDRESS: 'nowhere' } })
    expect(error?.message).toContain('THV_REGISTRY_ADDRESS: "nowhere" is not')
  })

  it('prints its version', async () => {
    expect((await runRegistry(['version'])).out).toMatch(/^thv-registry-api 0\.1\.0 /)
    const facts: unknown = JSON.parse((await runRegistry(['version', '--format', 'json'])).out)
    expect(Object.keys(facts as object)).toEqual(['version', 'commit', 'build_date', 'node_version', 'platform'])
  })
})

describe('validate', () => {
  it('says that a file is good, and what it holds', async () => {
    const config = file(GOOD)
    expect(await runRegistry(['validate', '--config', config])).toEqual({
      code: 0,
      error: undefined,
      out: expect.stringMatching(/config\.yaml is good: 1 source, 1 registry, access anonymous, store .*registry\.db\n$/),
    })
    expect((await runRegistry(['validate', '--config', file(GOOD + DATABASE)])).out).toContain('PostgreSQL registry at db.example.com:5432')
  })

  it('prints every problem with its place', async () => {
    const config = file('sources: [{name: a, managed: {}}]\nregistries: [{name: r, sources: [b]}]\nlogging: {}\nauth: {mode: anonymous}\n')
    expect(await runRegistry(['validate', '--config', config])).toEqual({
      code: 1,
      error: undefined,
      out: `${config}:2:34: registries[0].sources[0]: there is no source with this name\n${config}:3:1: logging: is not known; known are registryName, syncRequest, sources, registries, auth, database, storage, http, sync\n`,
    })
    expect((await runRegistry(['validate', '--config', join(folder, 'none')])).out).toBe(`${join(folder, 'none')}: does not exist\n`)
  })

  it('counts variables and the flag as serve does', async () => {
    const config = file(GOOD.replace('auth: {mode: anonymous}\n', ''))
    expect((await runRegistry(['validate', '--config', config])).code).toBe(1)
    expect((await runRegistry(['validate', '--config', config, '--auth-mode', 'anonymous'])).code).toBe(0)
    const warned = await runRegistry(['validate', '--config', config], {
      env: { THV_REGISTRY_AUTH_MODE: 'anonymous', THV_REGISTRY_SYNC_PARALEL: '3' },
    })
    expect(warned.out).toMatch(/^warning: THV_REGISTRY_SYNC_PARALEL has no effect: .*did you mean THV_REGISTRY_SYNC_PARALLEL\?\n/)
    const wrong = await runRegistry(['validate', '--config', config], { env: { THV_REGISTRY_AUTH_MODE: 'basic' } })
    expect(wrong).toMatchObject({ code: 1, out: 'THV_REGISTRY_AUTH_MODE: must be anonymous or oauth\n' })
  })
})

describe('serve', () => {
  it('does not start with a bad file', async () => {
    const { error } = await runRegistry(['serve', '--config', file('registries: 7\n')])
    expect(error?.code).toBe('registry_config_invalid')
    expect(error?.details['problems']).toContainEqual(expect.stringMatching(/config\.yaml:1:13: registries: must be a list, not a number$/))
  })

  it('warns of a server that everybody may change, and of a log level that is none', async () => {
    const config = file(`${GOOD}storage: {memory: true}\n`)
    await using registry = await startRegistry(['--config', config, '--address', ':0'], { env: { LOG_LEVEL: 'loud' } })
    const warnings = registry.lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg)
    expect(warnings).toContain('the log level "loud" is not debug, info, warn or error: info is used')
    expect(warnings).toContain('mode anonymous: everybody who reaches the address may read and change everything')
  })

  it('stops while it still waits for its store', async () => {
    const { log } = recordingLog()
    const lifecycle = createLifecycle()
    const running = runRegistry(['serve', '--config', file(GOOD), '--data-dir', folder], {
      log,
      lifecycle,
      parts: () => ({
        startEngine: () => {
          setImmediate(() => void lifecycle.shutdown('test'))
          return new Promise(() => {})
        },
        createAccess: () => {
          throw new Error('too far')
        },
        createApi: () => {
          throw new Error('too far')
        },
        createDiagnostics: () => {
          throw new Error('too far')
        },
      }),
    })
    expect((await running).error?.code).toBe('aborted')
  })

  it('says which folder cannot be made', async () => {
    writeFileSync(join(folder, 'taken'), '')
    const { error } = await runRegistry(['serve', '--data-dir', join(folder, 'taken', 'below')])
    expect(error?.code).toBe('store_unavailable')
    expect(error?.message).toContain(join(folder, 'taken', 'below'))
  })
})

describe('migrate', () => {
  it('is for databases', async () => {
    const { error } = await runRegistry(['migrate', 'up', '--config', file(GOOD), '--yes'])
    expect(error).toMatchObject({ code: 'usage', message: expect.stringContaining('the embedded store is migrated when it is opened') })
  })

  it.each([
    [[], /needs --num-steps/],
    [['--num-steps', '0'], /from 1 to 1000/],
    [['-n', '1001'], /from 1 to 1000/],
    [['-n', 'all'], /from 1 to 1000/],
    [['-n', '1'], /there is no terminal to confirm on: pass --yes/],
  ])('down %j is refused', async (args, message) => {
    const { error } = await runRegistry(['migrate', 'down', '--config', file(GOOD + DATABASE), ...args])
    expect(error?.code).toBe('usage')
    expect(error?.message).toMatch(message)
  })

  it.each(['no', 'y', ''])('down does nothing after the answer %j', async (answer) => {
    const asked: string[] = []
    const { error, out } = await runRegistry(['migrate', 'down', '-n', '2', '--config', file(GOOD + DATABASE)], {
      ask: async (question) => {
        asked.push(question)
        return answer
      },
    })
    expect(asked).toEqual([
      expect.stringMatching(/Take back 2 versions of the database registry at db\.example\.com:5432.*\nContinue\? \(yes\/no\): $/),
    ])
    expect(error?.code).toBe('aborted')
    expect(out).toBe('nothing was done\n')
  })
})

describe('listenAddress', () => {
  it.each([
    [':8080', '0.0.0.0', 8080],
    ['localhost:80', '127.0.0.1', 80],
    ['[::1]:0', '::1', 0],
    ['10.0.0.1:65535', '10.0.0.1', 65_535],
  ])('%s', (text, host, port) => expect(listenAddress('--address', text)).toEqual({ host, port }))

  it('knows loopback', () => {
    expect(['127.0.0.1', '127.1.2.3', '::1', '0.0.0.0', '10.0.0.1', '::'].map(isLoopback)).toEqual([true, true, true, false, false, false])
  })
})

describe('startLines', () => {
  it('show how to ask with a token', () => {
    const lines = startLines(
      {
        address: { host: '0.0.0.0', port: 8080, url: 'http://0.0.0.0:8080' },
        internalAddress: undefined,
        config: {
          registryName: 'demo',
          sources: [],
          registries: [{ name: 'all', sources: ['a', 'b'] }],
          auth: {
            mode: 'oauth',
            publicPaths: [],
            oauth: { realm: 'r', providers: [{ name: 'idp', issuerUrl: '', audience: '', allowPrivateIP: false }] },
          },
          storage: { kind: 'sqlite' },
          http: { compression: true, cacheSeconds: 0, publicHealth: true, maxBodyBytes: 1 },
          sync: { parallel: 1, leaseMs: 1, retryMs: 1, jitter: 0, allowedFolders: [], allowPrivateAddresses: false, maxFileBytes: 1 },
        },
      },
      'config.yaml',
    )
    expect(lines[0]).toBe('demo is served at http://127.0.0.1:8080')
    expect(lines).toContainEqual(expect.stringContaining('tokens of idp'))
    expect(lines).toContainEqual(
      expect.stringContaining('curl -H "Authorization: Bearer $TOKEN" \'http://127.0.0.1:8080/registry/all/v0.1/servers?limit=5\''),
    )
  })
})
