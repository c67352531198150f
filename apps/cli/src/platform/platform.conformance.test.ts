import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { canBecomeOthers, OTHER_USER, talkAs } from '@thv/http/testing/other-user'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { ensurePythonEnv } from '@thv/testkit/python/python-env'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

/* The platform as users have it: the real program, the operator, a proxy and a published server, as processes of this machine. */

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const THV = join(ROOT, 'apps/cli/bin/thv.js')
const SERVER = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')

let home: string
let folder: string
let programs = process.env['PATH'] ?? ''
beforeAll(async () => {
  // One server is a package of PyPI: Python to run it, and pip, which fetches uv, may not be on this machine. The list is that of other tests.
  const { bin } = await ensurePythonEnv(['mcp==2.3.0'])
  programs = `${bin}:${programs}`
  home = realpathSync(mkdtempSync(join(tmpdir(), 'thv-up-')))
  keepPackageIndexes(join(home, 'config'))
  folder = join(home, '.thv')
  // No download: an image of the user's own map.
  writeFileSync(join(home, 'server.yaml'), manifest('thing', 'example.com/everything:1'))
  writeFileSync(join(home, 'images.yaml'), `images:\n  - match: example.com/everything:*\n    command: [${process.execPath}, ${SERVER}]\n`)
}, 400_000)
afterAll(async () => {
  await thv('down')
  rmSync(home, { recursive: true, force: true })
})

/** The configuration of thv is the test's own, that of pip and uv is the machine's. */
function keepPackageIndexes(config: string): void {
  mkdirSync(config)
  for (const program of ['pip', 'uv']) {
    const known = join(process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), program)
    if (existsSync(known)) symlinkSync(known, join(config, program))
  }
}

function manifest(name: string, image: string): string {
  return `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata:
  name: ${name}
spec:
  image: ${image}
  transport: stdio
  args: [stdio]
`
}

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function start(...args: string[]): ChildProcess & { readonly said: () => string; readonly finished: Promise<Ended> } {
  const env = { ...process.env, PATH: programs, XDG_CONFIG_HOME: join(home, 'config') }
  const child = spawn(process.execPath, [THV, ...args], { cwd: home, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stderr.on('data', (chunk) => {
    err += chunk
  })
  const finished = once(child, 'close').then(([code]) => ({ code: code as number | null, out, err }))
  return Object.assign(child, { said: () => out + err, finished })
}

const thv = (...args: string[]): Promise<Ended> => start(...args).finished

/** Processes that have anything to do with the data folder. */
function processes(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const text = readFileSync(`/proc/${pid}/cmdline`, 'latin1') + readFileSync(`/proc/${pid}/environ`, 'latin1')
        const isZombie = /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
        return text.includes(folder) && !isZombie ? [`${pid} ${text.slice(0, 120).replaceAll('\0', ' ')}`] : []
      } catch {
        return [] // it has just ended
      }
    })
}

const noneLeft = () => vi.waitFor(() => expect(processes()).toEqual([]), { timeout: 30_000, interval: 100 })
const identity = async () => {
  const { metadata, status } = JSON.parse((await thv('get', 'mcpserver', 'thing', '-o', 'json')).out)
  return { uid: metadata.uid as string, url: status.url as string }
}

/** The address of the registry, which answers. */
const registryUrl = () =>
  vi.waitFor(async () => /^registry +ready (\S+)/m.exec((await thv('status')).out)?.[1] ?? expect.fail('the registry does not answer'), {
    timeout: 60_000,
    interval: 500,
  })

const POLL = { timeout: 60_000, interval: 500 }

describe('the platform in the background', () => {
  it('starts, and says when its servers are ready', async () => {
    await thv('up', '--detach', '--no-examples').then(({ code, err }) => expect({ code, err }).toMatchObject({ code: 0 }))
    writeFileSync(join(folder, 'images.yaml'), readFileSync(join(home, 'images.yaml')))
    await thv('down')
    const { code, out, err } = await thv('up', '--detach', '--no-examples', '-f', 'server.yaml')
    expect({ code, err }).toMatchObject({ code: 0 })
    expect(err).toMatch(/thing: is ready at http:\/\/127\.\S+\/mcp/)
    expect(out).toContain('kubectl --kubeconfig .thv/kubeconfig get mcpservers')
    expect(statSync(join(folder, 'kubeconfig')).mode & 0o777).toBe(0o600)
  })

  it('is found by all commands', async () => {
    expect((await thv('status')).out).toMatch(/^platform +running for .*\noperator +ready\n[\s\S]*thing +ready +http:\/\/127\./)
    expect((await thv('call', 'thing', 'echo', 'message=hello')).out).toBe('Echo: hello\n')
    expect((await thv('get', 'mcpservers')).out).toMatch(/\nthing +Running +True /)
    const { out } = await thv('logs', 'thing')
    expect(out).toMatch(/^\[thing-0\/mcp\] ← tools\/call {2}✓$/m)
    expect(out).toMatch(/^\[thing-\S+\/toolhive\] INFO {2}listening /m)
    expect((await thv('logs', 'thing', '--raw')).out).toContain('"Echo: hello"')
  })

  it.skipIf(!canBecomeOthers)('rejects other users of this machine', async () => {
    const { url } = await identity()
    const registry = await registryUrl()
    const { items } = JSON.parse((await thv('get', 'pods', '-o', 'json')).out) as {
      items: { metadata: { name: string }; status: { podIP: string } }[]
    }
    const proxy = items.find(({ metadata }) => /^thing-.{3,}/.test(metadata.name))?.status.podIP ?? ''
    const get = (user: number, at: URL) =>
      talkAs(user, {
        host: at.hostname,
        port: Number(at.port),
        text: `GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      })
    const service = new URL(url)
    const direct = new URL(`http://${proxy}:8080/`)
    for (const at of [service, direct, new URL(registry)]) expect(await get(process.getuid?.() ?? 0, at)).toMatch(/^HTTP\/1\.1 200 /)
    for (const at of [service, new URL(registry)]) expect(await get(OTHER_USER, at)).toBe('')
    expect(await get(OTHER_USER, direct)).toMatch(/^HTTP\/1\.1 403 [\s\S]*thv up --shared/)
  })

  it('lets its user log in to a protected server, and call it', async () => {
    await using idp = await startOidcServer({ scopes: ['mcp'] })
    const oidc = `  oidcConfig:
    type: inline
    inline:
      issuer: ${idp.issuer}
      audience: tests
      jwksAllowPrivateIP: true
      protectedResourceAllowPrivateIP: true
      insecureAllowHTTP: true
      scopes: [mcp]
`
    writeFileSync(join(home, 'guarded.yaml'), `${manifest('guarded', 'example.com/everything:1')}${oidc}`)
    expect(await thv('apply', '-f', 'guarded.yaml')).toMatchObject({ code: 0 })
    await vi.waitFor(async () => expect((await thv('status')).out).toMatch(/guarded +ready/), { timeout: 120_000, interval: 500 })
    expect(await thv('call', 'guarded', 'echo', 'message=hi')).toMatchObject({ code: 1, err: expect.stringContaining('"thv login"') })

    const login = start('login', 'guarded')
    const address = await vi.waitFor(() => /^ {2}(http\S+)$/m.exec(login.said())?.[1] ?? expect.fail(login.said()), 60_000)
    const redirectUri = new URL(address).searchParams.get('redirect_uri') ?? ''
    await fetch(await signIn(address, { user: 'ada', redirectUri }))
    expect(await login.finished).toMatchObject({ code: 0, err: expect.stringContaining('Logged in to http://127.') })
    expect((await thv('call', 'guarded', 'echo', 'message=hi')).out).toBe('Echo: hi\n')
    expect(await thv('logout', 'guarded')).toMatchObject({ code: 0 })
    expect(await thv('delete', '-f', 'guarded.yaml')).toMatchObject({ code: 0 })
  })

  it('is the only one on its folder', async () => {
    expect(await thv('up')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^thv: a platform is already running in .* \(process \d+\)/),
    })
  })

  it('says of an image that it cannot run what to do', async () => {
    writeFileSync(join(home, 'other.yaml'), manifest('other', 'example.com/other:1'))
    await thv('apply', '-f', 'other.yaml')
    await vi.waitFor(
      async () =>
        expect((await thv('status')).out).toMatch(/other +failing +pod other-0: no image: .*npx:\/\/PACKAGE@VERSION.*images\.yaml/),
      { timeout: 60_000, interval: 500 },
    )
    expect((await thv('call', 'other', 'echo')).err).toMatch(/MCPServer default\/other is \w+: /)
    expect(await thv('delete', '-f', 'other.yaml')).toMatchObject({ code: 0 })
  })

  it('[002-086] runs the example of a tool filter: clients see the one tool that it names, and call it', async () => {
    const example = join(ROOT, 'deploy/examples/operator/mcp-servers/mcpserver_fetch_tools_filter.yaml')
    expect(await thv('apply', '-f', example)).toMatchObject({ code: 0 })
    // The package is fetched from PyPI.
    await vi.waitFor(async () => expect((await thv('status')).out).toMatch(/fetch +ready/), { timeout: 200_000, interval: 1_000 })
    const tools = JSON.parse((await thv('tools', 'fetch', '--output', 'json')).out) as { name: string; description: string }[]
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ['read_page', 'Reads a page of the web and returns its text.'],
    ])
    // The server itself answers: it reads no page of this machine.
    const asked = await thv('call', 'fetch', 'read_page', 'url=http://127.0.0.1/page')
    expect(asked.out + asked.err).toContain('not a public address')
    const hidden = await thv('call', 'fetch', 'fetch', 'url=http://127.0.0.1/page')
    expect(hidden.code).not.toBe(0)
    expect(hidden.out + hidden.err).not.toContain('not a public address')
    expect(await thv('delete', '-f', example)).toMatchObject({ code: 0 })
  })

  it('survives kill -9 with the same objects and URLs, and leaves no process behind', async () => {
    const before = await identity()
    const registry = await registryUrl()
    const name = 'io.example/mine'
    const publish = await fetch(`${registry}/default/v0.1/publish`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${readFileSync(join(folder, 'registry/write-token'), 'utf8').trim()}`,
      },
      body: JSON.stringify({ name, description: 'Mine', version: '1.0.0' }),
    })
    expect([publish.status, await publish.text()]).toMatchObject([200, expect.stringContaining(name)])
    const { pid } = JSON.parse(readFileSync(join(folder, 'platform.json'), 'utf8'))
    process.kill(pid, 'SIGKILL')
    await noneLeft()
    expect(await thv('status')).toMatchObject({ code: 1, err: expect.stringContaining('start it with "thv up"') })
    expect((await thv('get', 'mcpservers')).err).toMatch(/the platform in .* is not responding; start it with "thv up"/)
    expect(await thv('up', '--detach', '--no-examples')).toMatchObject({ code: 0 })
    expect(await identity()).toEqual(before)
    expect((await thv('call', 'thing', 'echo', 'message=again')).out).toBe('Echo: again\n')
    expect(await registryUrl()).toBe(registry)
    expect((await fetch(`${registry}/default/v0.1/servers/${encodeURIComponent(name)}/versions/latest`)).status).toBe(200)
  })

  it('serves a configuration of the user, follows its file, and leaves the registry out', async () => {
    await thv('down')
    const write = (source: string) =>
      writeFileSync(join(home, 'registry.yaml'), `registries: [{ name: own, file: { path: ${source} } }]\nauth: { mode: anonymous }\n`)
    for (const each of ['first', 'second'])
      writeFileSync(join(home, `${each}.json`), JSON.stringify({ servers: { [each]: { image: `example.com/${each}:1` } } }))
    write('first.json')
    expect(await thv('up', '--detach', '--no-examples', '--registry-config', 'registry.yaml')).toMatchObject({ code: 0 })
    const found = async (word: string) => await vi.waitFor(async () => expect((await thv('search', word)).out).toContain(`/${word} `), POLL)
    await found('first')
    write('second.json')
    await found('second')
    await thv('down')
    expect(await thv('up', '--detach', '--no-examples', '--no-registry')).toMatchObject({ code: 0 })
    expect((await thv('status')).out).not.toMatch(/^registry/m)
    expect((await thv('get', 'mcpregistries')).out).not.toContain('default')
    expect(await thv('search', 'first')).toMatchObject({ code: 1, err: expect.stringContaining('no registry is running') })
  })

  it('stops with thv down', async () => {
    expect(await thv('down')).toMatchObject({ code: 0, out: expect.stringContaining('Stopped the platform in') })
    await noneLeft()
  })
})

describe('the platform at a terminal', () => {
  it('stops in good order with one Ctrl-C, also when npm sends it twice', async () => {
    const up = start('up', '--no-examples')
    await vi.waitFor(() => expect(up.said()).toContain('Ctrl-C stops it.'), { timeout: 120_000, interval: 100 })
    up.kill('SIGINT')
    up.kill('SIGINT')
    expect(await up.finished).toMatchObject({ code: 0, err: expect.stringMatching(/Stopping …\n$/) })
    await noneLeft()
  })

  it.runIf(process.platform === 'linux')(
    'names its steps on a terminal, updates lines in place, and stays within 100 columns',
    async () => {
      // script(1) gives it a terminal of its own, of the usual width.
      const command = `stty cols 200; exec ${process.execPath} ${THV} up --no-examples`
      const { CI: _, ...variables } = process.env
      const up = spawn('script', ['-qefc', command, '/dev/null'], { cwd: home, env: variables, detached: true })
      let said = ''
      up.stdout.on('data', (chunk) => {
        said += chunk
      })
      const closed = once(up, 'close')
      await vi.waitFor(() => expect(said).toContain('Ctrl-C stops it.'), { timeout: 120_000, interval: 100 })
      up.stdin.write('\x03')
      await closed
      for (const step of ['Building the programs', 'Starting the API server', 'Starting the node', 'Starting the registry'])
        expect(stripVTControlCharacters(said)).toMatch(new RegExp(`… +\\d+\\.\\d s {2}${step}\\r[\\s\\S]*✓ +\\d+\\.\\d s {2}${step}\\r\\n`))
      expect(said).toContain('A\x1b[K') // the cursor goes up, and the line is written over
      const lines = stripVTControlCharacters(said).split(/[\r\n]+/)
      expect(lines.filter((line) => line.length > 100)).toEqual([])
      await noneLeft()
    },
  )

  it('can be interrupted while it starts', async () => {
    const up = start('up', '--no-examples')
    await vi.waitFor(() => expect(up.said()).toContain('operator: '), { timeout: 60_000, interval: 50 })
    up.kill('SIGINT')
    expect(await up.finished).toMatchObject({ code: 0 })
    await noneLeft()
  })

  it('says that its port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    expect(await thv('up', '--no-examples', '--port', String(port))).toMatchObject({
      code: 1,
      err: expect.stringContaining(`port ${port} is in use; choose another with --port`),
    })
    taken.close()
    await noneLeft()
  })
})
