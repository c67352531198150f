import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type BindGuard, installBindGuard, withBindGuard } from './bind-guard.ts'
import { startChild, type TestChild } from './testing/child.ts'
import { echoNamed, listenOn } from './testing/sockets.ts'

const POD = '127.213.128.7'
const cleanups: (() => unknown)[] = []
let folder = ''
let guard: BindGuard

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'thv guard "odd" '))
  guard = await installBindGuard(folder)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function start(program: string, args: readonly string[], env: Record<string, string> = {}): TestChild {
  const child = startChild(program, args, withBindGuard(env, guard.envFor(POD)))
  cleanups.push(() => child.stop())
  return child
}

/** Runs each statement in one program, which prints where the server that it made listens. */
async function places(program: string, script: string, count: number): Promise<string[]> {
  const child = start(program, program.includes('python') ? ['-c', script] : ['-e', script])
  const found: string[] = []
  for (let i = 0; i < count; i++) found.push((await child.line()) ?? 'ended')
  return found
}

/** The one that runs the tests, and that of the system where there is another. */
const nodes = [process.execPath, '/usr/bin/node'].filter((path) => existsSync(path))

describe.skipIf(process.platform !== 'linux').each(nodes)('the bind guard in %s', (program) => {
  const script = (statements: readonly string[]) => `
    const net = require('node:net'), http = require('node:http'), dgram = require('node:dgram')
    const servers = []
    const statements = [${statements.map((statement) => `(shown) => { ${statement} }`).join(',')}]
    ;(async () => {
      for (const run of statements) await new Promise((done) => {
        const shown = (server) => { const a = server.address(); console.log(typeof a === 'string' ? 'unix' : a.address + ' ' + (a.port > 0)); server.close(done) }
        run(shown)
      })
      console.log('end')
    })()
    setInterval(() => {}, 1000)`

  it('moves what must be moved, and nothing else', async () => {
    const rows = [
      ['no host', `const s = net.createServer().listen(7100, () => shown(s))`, POD],
      ['a port as text', `const s = net.createServer().listen('7101', () => shown(s))`, POD],
      ['0.0.0.0', `const s = http.createServer().listen(7102, '0.0.0.0', () => shown(s))`, POD],
      ['::', `const s = http.createServer().listen(7103, '::', 100, () => shown(s))`, POD],
      ['localhost', `const s = http.createServer().listen({ port: 7104, host: 'localhost' }, () => shown(s))`, POD],
      [
        '127.0.0.1',
        `const s = net.createServer().listen({ port: 7105, host: '127.0.0.1', backlog: 5 }); s.on('listening', () => shown(s))`,
        POD,
      ],
      ['::1', `const s = net.createServer().listen({ port: 7106, host: '::1', ipv6Only: true }, () => shown(s))`, POD],
      ['the mapped wildcard', `const s = net.createServer().listen(7107, '::FFFF:0.0.0.0', () => shown(s))`, POD],
      ['a backlog second', `const s = net.createServer().listen(7108, 5, () => shown(s))`, POD],
      ['another address', `const s = net.createServer().listen(7109, '127.213.0.9', () => shown(s))`, '127.213.0.9'],
      ['port 0 on loopback', `const s = net.createServer().listen(0, '127.0.0.1', () => shown(s))`, '127.0.0.1'],
      ['port 0 everywhere', `const s = net.createServer().listen(0, () => shown(s))`, '127.0.0.1'],
      ['nothing at all', `const s = net.createServer().listen(() => shown(s))`, '127.0.0.1'],
      [
        'an HTTP server with promises',
        `const s = http.createServer(); s.listen(7110); require('node:events').once(s, 'listening').then(() => shown(s))`,
        POD,
      ],
      ['datagrams', `const s = dgram.createSocket('udp4'); s.bind(7111, () => shown(s))`, POD],
      ['datagrams of IPv6', `const s = dgram.createSocket('udp6'); s.bind({ port: 7112 }, () => shown(s))`, `::ffff:${POD}`],
      ['datagrams of a client', `const s = dgram.createSocket('udp4'); s.bind(() => shown(s))`, '0.0.0.0'],
    ] as const
    const found = await places(program, script(rows.map(([, statement]) => statement)), rows.length)
    expect(rows.map(([form], i) => [form, found[i]])).toEqual(rows.map(([form, , place]) => [form, `${place} true`]))
  })

  it('leaves unix sockets and handles', async () => {
    const path = join(folder, `${program === process.execPath ? 'a' : 'b'}.sock`)
    const inherit = `require('node:net').createServer().listen({ fd: 3 }, function () { console.log(this.address().address); process.exit() })`
    const handles = `const a = net.createServer().listen(7120, () =>
      require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(inherit)}], { stdio: ['ignore', 'inherit', 'inherit', a._handle.fd] }))`
    const found = await places(
      program,
      script([`const s = net.createServer().listen(${JSON.stringify(path)}, () => shown(s))`, handles]),
      2,
    )
    expect(found).toEqual(['unix', POD])
  })

  it('reports a taken port as Node does', async () => {
    const taken = await listenOn(POD, echoNamed('x'))
    cleanups.push(() => taken.close())
    const failing = `const s = net.createServer().on('error', (e) => { console.log(e.code); process.exit() }).listen(${taken.port})`
    expect(await places(program, script([failing]), 1)).toEqual(['EADDRINUSE'])
  })

  it('holds for servers that share a port among processes', async () => {
    const file = join(folder, 'shared.cjs')
    writeFileSync(
      file,
      `const cluster = require('node:cluster')
       if (cluster.isPrimary) { cluster.fork(); cluster.on('listening', (_, at) => console.log(at.address)) }
       else require('node:http').createServer((_, answer) => answer.end('shared')).listen(7140)`,
    )
    const child = start(program, [file])
    expect(await child.line()).toBe(POD)
    expect(await (await fetch(`http://${POD}:7140/`)).text()).toBe('shared')
  })

  it('holds in workers and in children', async () => {
    const inside = `const s = require('net').createServer().listen(PORT, () => { console.log(s.address().address); s.close() })`
    const outer = `
      const { Worker } = require('node:worker_threads')
      new Worker(${JSON.stringify(inside.replace('PORT', '7130'))}, { eval: true }).on('exit', () =>
        require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(inside.replace('PORT', '7131'))}], { stdio: 'inherit' }))`
    expect(await places(program, outer, 2)).toEqual([POD, POD])
  })
})

describe('the variables of the guard', () => {
  it('stand before those that a container has', () => {
    const env = guard.envFor(POD)
    const merged = withBindGuard({ NODE_OPTIONS: '--no-warnings', PYTHONPATH: '/app', A: 'b', THV_BIND_ADDRESS: '0.0.0.0' }, env)
    expect(merged).toEqual({
      NODE_OPTIONS: `${env['NODE_OPTIONS']} --no-warnings`,
      PYTHONPATH: `${env['PYTHONPATH']}${delimiter}/app`,
      A: 'b',
      THV_BIND_ADDRESS: POD,
    })
    expect(withBindGuard({}, env)).toEqual(env)
  })
})

const python = `
import socket, sys
def show(s):
    print(s.getsockname()[0], s.getsockname()[1] > 0, flush=True)
    s.close()
`

describe.skipIf(process.platform !== 'linux')('the bind guard in Python', () => {
  it('moves what must be moved, and nothing else', async () => {
    const rows = [
      ['0.0.0.0', `s = socket.socket(); s.bind(('0.0.0.0', 7201)); show(s)`, POD],
      ['the empty host', `s = socket.socket(); s.bind(('', 7202)); show(s)`, POD],
      ['localhost', `s = socket.socket(); s.bind(('localhost', 7203)); show(s)`, POD],
      ['::', `s = socket.socket(socket.AF_INET6); s.bind(('::', 7204)); show(s)`, `::ffff:${POD}`],
      ['::1 with flow and scope', `s = socket.socket(socket.AF_INET6); s.bind(('::1', 7205, 0, 0)); show(s)`, `::ffff:${POD}`],
      ['another address', `s = socket.socket(); s.bind(('127.213.0.9', 7206)); show(s)`, '127.213.0.9'],
      ['port 0 on loopback', `s = socket.socket(); s.bind(('127.0.0.1', 0)); show(s)`, '127.0.0.1'],
      ['port 0 everywhere', `s = socket.socket(); s.bind(('', 0)); show(s)`, '127.0.0.1'],
      ['datagrams', `s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 7207)); show(s)`, POD],
      ['datagrams of a client', `s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 0)); show(s)`, '0.0.0.0'],
      [
        'create_server for both families',
        `show(socket.create_server(('', 7208), family=socket.AF_INET6, dualstack_ipv6=True))`,
        `::ffff:${POD}`,
      ],
      [
        'asyncio',
        `
import asyncio
async def main():
    server = await asyncio.start_server(lambda r, w: None, None, 7209)
    assert len(server.sockets) == 1, server.sockets
    print(server.sockets[0].getsockname()[0], True, flush=True)
asyncio.run(main())`,
        POD,
      ],
      [
        'asyncio with several hosts',
        `
import asyncio
async def main():
    server = await asyncio.start_server(lambda r, w: None, ['0.0.0.0', '::', 'localhost'], 7210)
    assert len(server.sockets) == 1, server.sockets
    print(server.sockets[0].getsockname()[0], True, flush=True)
asyncio.run(main())`,
        POD,
      ],
      [
        'asyncio datagrams',
        `
import asyncio
async def main():
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=('0.0.0.0', 7211))
    print(transport.get_extra_info('sockname')[0], True, flush=True)
asyncio.run(main())`,
        POD,
      ],
      [
        'http.server',
        `import http.server; show(http.server.ThreadingHTTPServer(('', 7212), http.server.BaseHTTPRequestHandler).socket)`,
        POD,
      ],
    ] as const
    const found = await places('python3', python + rows.map(([, statements]) => statements).join('\n'), rows.length)
    expect(rows.map(([form], i) => [form, found[i]])).toEqual(rows.map(([form, , place]) => [form, `${place} True`]))
  })

  it('leaves unix sockets, and errors as they are', async () => {
    const path = join(folder, 'python.sock')
    const script = `
s = socket.socket(socket.AF_UNIX); s.bind(${JSON.stringify(path)}); print('unix', flush=True)
a = socket.socket(); a.bind(('', 7220)); a.listen()
try:
    b = socket.socket(); b.bind(('', 7220))
except OSError as e:
    print(e.errno == 98, flush=True)
try:
    socket.socket().bind('nonsense')
except TypeError as e:
    print('TypeError', flush=True)
`
    expect(await places('python3', python + script, 3)).toEqual(['unix', 'True', 'TypeError'])
  })

  it('lets a program bind its two families one by one', async () => {
    const script = `
a = socket.socket(); a.bind(('0.0.0.0', 7221)); a.listen()
b = socket.socket(socket.AF_INET6); b.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1); b.bind(('::', 7221)); b.listen()
show(a); show(b)
`
    expect(await places('python3', python + script, 2)).toEqual([`${POD} True`, '::1 True'])
  })

  it('runs the sitecustomize that was there before', async () => {
    const other = join(folder, 'other')
    mkdirSync(other, { recursive: true })
    writeFileSync(join(other, 'sitecustomize.py'), `MARK = 'theirs'\nprint('sitecustomize of the program', flush=True)\n`)
    const script = `import sitecustomize, socket; print(sitecustomize.MARK); s = socket.socket(); s.bind(('', 7222)); print(s.getsockname()[0], flush=True)`
    const child = start('python3', ['-c', script], { PYTHONPATH: other })
    expect([await child.line(), await child.line(), await child.line()]).toEqual(['sitecustomize of the program', 'theirs', POD])
  })
})
