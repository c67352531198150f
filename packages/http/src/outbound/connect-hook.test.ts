import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { afterEach, describe, expect, it } from 'vitest'
import type { AddressPolicy } from './address-policy.ts'
import { collect } from './collect.ts'
import { type ConnectHook, connectHookFromEnv } from './connect-hook.ts'
import { guardedConnector } from './guarded-connector.ts'
import { createOutbound } from './outbound.ts'
import { OutboundError } from './outbound-error.ts'

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function listen(server: Server, at: object = { host: '127.0.0.1', port: 0 }): Promise<number> {
  server.listen(at)
  await once(server, 'listening')
  cleanups.push(() => server.close())
  return (server.address() as AddressInfo).port
}

interface FakeResolver {
  readonly env: Record<string, string>
  readonly questions: Record<string, unknown>[]
  answer: (question: Record<string, unknown>) => object | string | undefined
}

/** Speaks the protocol of THV_RESOLVER; undefined is silence. */
async function fakeResolver(answer: FakeResolver['answer'], { unix = false } = {}): Promise<FakeResolver> {
  const questions: Record<string, unknown>[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    socket.on('data', (line) => {
      const question = JSON.parse(line.toString()) as Record<string, unknown>
      questions.push(question)
      const said = resolver.answer(question)
      if (said !== undefined) socket.end(typeof said === 'string' ? said : `${JSON.stringify(said)}\n`)
    })
  })
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
  })
  const resolver: FakeResolver = { env: {}, questions, answer }
  if (unix) {
    const folder = mkdtempSync(join(tmpdir(), 'thv '))
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
    await listen(server, { path: join(folder, 'r.sock') })
    resolver.env['THV_RESOLVER'] = `unix:${join(folder, 'r.sock')}`
  } else {
    resolver.env['THV_RESOLVER'] = `tcp:127.0.0.1:${await listen(server)}:secret-token_1`
  }
  return resolver
}

function hookOf(env: Record<string, string>, options = {}): ConnectHook {
  const hook = connectHookFromEnv(env, options)
  if (hook === undefined) throw new Error('no hook')
  return hook
}

async function backend(name: string): Promise<{ address: string; port: number; close(): void }> {
  const server = createServer((socket) => socket.on('error', () => undefined).end(name))
  const port = await listen(server)
  return { address: '127.0.0.1', port, close: () => server.close() }
}

/** The target of a connection to this name as the server reports it, or the error. */
async function dial(host: string, hook: ConnectHook, policy?: AddressPolicy, port = '80'): Promise<string> {
  const connect = guardedConnector({ hook, policy, resolve: async () => [], connectTimeoutMs: 5_000 })
  const socket = await new Promise<Socket>((resolve, reject) =>
    connect({ hostname: host, host, protocol: 'http:', port }, (error, opened) => (error ? reject(error) : resolve(opened as Socket))),
  )
  const [said] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return said.toString()
}

const place = ({ address, port }: { address: string; port: number }) => ({ address, port })

describe('connectHookFromEnv', () => {
  it('is nothing without THV_RESOLVER', () => {
    expect(connectHookFromEnv({})).toBeUndefined()
    expect(connectHookFromEnv({ THV_RESOLVER: '' })).toBeUndefined()
  })

  it.each(['unix:', 'http://x', 'tcp:127.0.0.1', 'tcp:127.0.0.1:80:', 'tcp:evil.example:80:t'])('refuses %s', (text) => {
    expect(() => connectHookFromEnv({ THV_RESOLVER: text })).toThrow('THV_RESOLVER is neither')
  })

  it('asks only about names that the platform can have', () => {
    const hook = hookOf({ THV_RESOLVER: 'unix:/nowhere' })
    for (const host of [
      'web',
      'web.',
      'web.team',
      'web.team.svc',
      'web.team.svc.cluster.local',
      'p-0.web.team.svc',
      'WEB.TEAM.SVC.corp.example',
    ])
      expect([host, hook.mayKnow(host)]).toEqual([host, true])
    for (const host of ['localhost', 'api.example.com', 'a.b.c.d', 'svc.example.com', 'x.svc.example.com.org', ''])
      expect([host, hook.mayKnow(host)]).toEqual([host, false])
  })

  it('tells who asks, and proves that it may', async () => {
    const resolver = await fakeResolver(() => ({}))
    const hook = hookOf({ ...resolver.env, THV_RESOLVER_NAMESPACE: 'team', POD_NAMESPACE: 'other', THV_BIND_ADDRESS: '127.9.128.4' })
    expect(await hook.resolve('web', 8_080)).toEqual({ kind: 'unknown' })
    const said = { host: 'web', port: 8_080, namespace: 'team', from: '127.9.128.4', token: 'secret-token_1' }
    expect(resolver.questions).toEqual([said])
  })

  it('remembers for a short time, asks again after a failure, and never remembers an error', async () => {
    const clock = new TestClock()
    const resolver = await fakeResolver(() => ({ addresses: [{ address: '127.0.0.1', port: 1 }] }), { unix: true })
    const hook = hookOf(resolver.env, { clock, cacheMs: 1_000 })
    const ask = () => hook.resolve('web.team', 80)
    await Promise.all([ask(), ask(), ask()])
    expect(resolver.questions).toHaveLength(1)
    hook.forget('web.team', 80)
    await ask()
    expect(resolver.questions).toHaveLength(2)
    await clock.advance(1_001)
    await ask()
    expect(resolver.questions).toHaveLength(3)
    resolver.answer = () => ({ problem: 'bad day' })
    await clock.advance(1_001)
    await expect(ask()).rejects.toMatchObject({ code: 'backend_dns', message: "the platform's resolver: bad day" })
  })

  it('takes the addresses in turn, unless the first is this caller’s', async () => {
    const addresses = [1, 2, 3].map((port) => ({ address: '127.0.0.1', port }))
    const resolver = await fakeResolver(({ host }) => ({ addresses, sticky: host === 'sticky.team' }))
    const hook = hookOf(resolver.env)
    const firsts = async (host: string) => {
      const ports: unknown[] = []
      for (let i = 0; i < 4; i++) {
        const answer = await hook.resolve(host, 80)
        ports.push(answer.kind === 'addresses' && answer.addresses[0]?.port)
      }
      return ports
    }
    expect(await firsts('web.team')).toEqual([1, 2, 3, 1])
    expect(await firsts('sticky.team')).toEqual([1, 1, 1, 1])
  })

  it('does not keep more answers than its bound', async () => {
    const resolver = await fakeResolver(() => ({}), { unix: true })
    const hook = hookOf(resolver.env, { cacheMs: 60_000 })
    for (let i = 0; i < 300; i++) await hook.resolve(`web-${i}.team`, 80)
    await hook.resolve('web-299.team', 80)
    expect(resolver.questions).toHaveLength(300)
    await hook.resolve('web-0.team', 80)
    expect(resolver.questions).toHaveLength(301)
  })

  it.each([
    ['nonsense', 'not json\n', 'not understood'],
    ['a wrong form', '{"addresses":[{"address":1}]}\n', 'not understood'],
    ['no object', '7\n', 'not understood'],
    ['an answer without end', `{"x":"${'y'.repeat(100_000)}`, 'too much'],
    ['a closed connection', '', 'without an answer'],
  ])('is clear about %s', async (_, answer, message) => {
    const resolver = await fakeResolver(() => answer)
    await expect(hookOf(resolver.env).resolve('web.team', 80)).rejects.toMatchObject({
      code: 'backend_dns',
      message: expect.stringContaining(message),
    })
  })

  it('limits the wait, and does not wait for a resolver that is gone', async () => {
    const clock = new TestClock()
    const silent = await fakeResolver(() => undefined)
    const pending = hookOf(silent.env, { clock })
      .resolve('web.team', 80)
      .catch((e: unknown) => e)
    while (silent.questions.length === 0) await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(2_000)
    expect(await pending).toMatchObject({ code: 'backend_dns', message: expect.stringContaining('within 2000 ms') })
    expect(clock.pending).toBe(0)
    await expect(hookOf({ THV_RESOLVER: 'unix:/nowhere/at/all' }).resolve('web.team', 80)).rejects.toMatchObject({
      code: 'backend_dns',
      message: expect.stringContaining('cannot be reached'),
    })
  })
})

describe('connecting through the hook', () => {
  it('reaches the pod behind the name, with its port', async () => {
    const pod = await backend('pod')
    const resolver = await fakeResolver(() => ({ addresses: [place(pod)] }))
    expect(await dial('web.team', hookOf(resolver.env))).toBe('pod')
  })

  it('reaches pods on loopback that the platform vouches for, where loopback is forbidden otherwise', async () => {
    const pod = await backend('pod')
    const resolver = await fakeResolver(({ host }) => (host === 'web.team' ? { addresses: [place(pod)] } : {}))
    const hook = hookOf(resolver.env)
    expect(await dial('web.team', hook, {})).toBe('pod')
    await expect(dial('127.0.0.1', hook, {}, String(pod.port))).rejects.toMatchObject({ code: 'backend_blocked' })
    await expect(dial('localhost', hook, {}, String(pod.port))).rejects.toMatchObject({ code: 'backend_blocked' })
    const connect = guardedConnector({ hook, policy: {}, resolve: async () => [{ address: '127.0.0.1', port: pod.port }] })
    const error = await new Promise<unknown>((resolve) =>
      connect({ hostname: 'evil.com', host: 'evil.com', protocol: 'http:', port: '80' }, (failure, _) => resolve(failure)),
    )
    expect(error).toMatchObject({ code: 'backend_blocked' })
  })

  it('counts pods as private addresses', async () => {
    const pod = await backend('pod')
    const resolver = await fakeResolver(() => ({ addresses: [place(pod)] }))
    const hook = hookOf(resolver.env)
    await expect(dial('web.team', hook, { denyPrivate: true })).rejects.toMatchObject({ code: 'backend_blocked' })
    expect(await dial('web.team', hook, { denyPrivate: true, allowPrivate: true })).toBe('pod')
    await expect(dial('web.team', hook, { blockedAddresses: ['127.0.0.1'] })).rejects.toMatchObject({ code: 'backend_blocked' })
  })

  it.each(['169.254.169.254', '0.0.0.0', '100.100.100.200', 'fe80::1'])(
    'does not connect to %s, even if the resolver returns it',
    async (address) => {
      const resolver = await fakeResolver(() => ({ addresses: [{ address, port: 80 }] }))
      await expect(dial('web.team', hookOf(resolver.env), {})).rejects.toMatchObject({ code: 'backend_blocked' })
    },
  )

  it.each(['kubernetes.default', 'kubernetes.default.svc', 'metadata', 'kubernetes'])(
    'never asks about %s for a remote server',
    async (host) => {
      const resolver = await fakeResolver(() => ({ addresses: [{ address: '127.0.0.1', port: 1 }] }))
      await expect(dial(host, hookOf(resolver.env), {})).rejects.toMatchObject({ code: 'backend_blocked' })
      expect(resolver.questions).toEqual([])
    },
  )

  it('vets what an alias leads to as if it had been asked for', async () => {
    const resolver = await fakeResolver(() => ({ alias: 'metadata.google.internal' }))
    await expect(dial('out.team', hookOf(resolver.env), {})).rejects.toMatchObject({ code: 'backend_blocked' })
    resolver.answer = () => ({ alias: 'localhost' })
    await expect(dial('out2.team', hookOf(resolver.env), {})).rejects.toMatchObject({ code: 'backend_blocked' })
  })

  it('asks again when the pods of the last answer are gone', async () => {
    const [old, next] = [await backend('old'), await backend('next')]
    const resolver = await fakeResolver(() => ({ addresses: [place(old)] }))
    const hook = hookOf(resolver.env, { cacheMs: 60_000 })
    expect(await dial('web.team', hook)).toBe('old')
    old.close()
    resolver.answer = () => ({ addresses: [place(next)] })
    expect(await dial('web.team', hook)).toBe('next')
    expect(resolver.questions).toHaveLength(2)
  })

  it('fails once and clearly when nothing else stands behind the name', async () => {
    const pod = await backend('pod')
    const resolver = await fakeResolver(() => ({ addresses: [place(pod)] }))
    const hook = hookOf(resolver.env)
    pod.close()
    await expect(dial('web.team', hook)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})

describe('createOutbound with a hook', () => {
  const get = { method: 'GET', path: '/', headers: [] as string[], maxResponseBytes: 1_000 }

  it.each([
    [{ refused: 'no pod behind Service team/web is ready' }, 'backend_refused', 'no pod behind Service team/web is ready'],
    [{ missing: 'there is no such Service' }, 'backend_dns', 'there is no such Service'],
  ])('says what the platform said: %j', async (answer, code, message) => {
    const resolver = await fakeResolver(() => answer)
    await using outbound = createOutbound({ connectHook: hookOf(resolver.env) })
    const error = await collect(outbound.target({ url: 'http://web.team:8080' }), get).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(OutboundError)
    expect(error).toMatchObject({ code, message, sent: false })
  })
})
