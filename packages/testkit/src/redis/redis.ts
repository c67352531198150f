import { mkdtemp, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { type Certificate, createCertificate } from '../cluster/identity/certificate.ts'
import { type Daemon, startDaemon } from '../cluster/process/daemon.ts'
import { freezeProcess, unfreezeProcess } from '../cluster/process/process-freeze.ts'
import { guardedFolderPrefix, type ProcessGuard, startGuard } from '../cluster/process/process-guard.ts'
import { startOnPort } from '../cluster/process/start-on-port.ts'
import { ensureRedis } from './redis-programs.ts'

/** A Redis server of its own on a free port of loopback, which ends with this process. Nothing is written to disk. */
export interface TestRedis extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** Of the authority of its certificate. */
  readonly caPem: string
  kill(): Promise<void>
  /** On the same port, with nothing in it. */
  start(): Promise<void>
  freeze(): void
  unfreeze(): void
  /** Sends one command over a connection of its own, and gives the raw reply. */
  command(...words: string[]): Promise<string>
}

export interface RedisServerOptions {
  readonly password?: string
  /** ACL users: name, then its rules. */
  readonly users?: readonly string[]
  readonly tls?: boolean
  /** Signs its certificate. Else one of its own. */
  readonly authority?: Certificate
  readonly replicaOf?: { readonly host: string; readonly port: number }
  readonly settings?: Readonly<Record<string, string>>
}

const START_LIMIT_MS = 60_000

export async function startRedis(options: RedisServerOptions = {}): Promise<TestRedis> {
  const place = await preparePlace()
  try {
    return await runServer(place, options)
  } catch (error) {
    await place.guard.close()
    throw error
  }
}

/** A primary, a replica and three Sentinels that agree on them. */
export interface TestSentinels extends AsyncDisposable {
  readonly masterName: string
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
  readonly primary: TestRedis
  readonly replica: TestRedis
  /** Of the authority of the Sentinels, where they use TLS. That of Redis is another one. */
  readonly caPem: string | undefined
}

export interface SentinelOptions {
  readonly password?: string
  /** Silence of a primary after which another one is made. On a busy machine a short one also makes another without a fault. */
  readonly downAfterMs?: number
  readonly failoverTimeoutMs?: number
  readonly tls?: boolean
  readonly settings?: Readonly<Record<string, string>>
}

export async function startSentinels(options: SentinelOptions = {}): Promise<TestSentinels> {
  const { password, downAfterMs = 500, failoverTimeoutMs = 3_000, tls = false } = options
  const authority = createCertificate({ commonName: 'thv test redis authority', ca: true })
  const auth = { ...(password !== undefined && { password }), ...(tls && { tls, authority }) }
  // Each may become the replica of the other.
  const settings = {
    ...options.settings,
    ...(password !== undefined && { masterauth: password }),
    ...(tls && { 'tls-replication': 'yes' }),
  }
  const primary = await startRedis({ ...auth, settings })
  const replica = await startRedis({ ...auth, replicaOf: primary, settings })
  const place = await preparePlace()
  const secure = tls ? await sentinelCertificates(place, authority) : undefined
  const sentinels: { host: string; port: number }[] = []
  for (let i = 0; i < 3; i++) {
    const lines = secure?.lines ?? []
    const settingsOfOne = { index: i, primary, password, downAfterMs, failoverTimeoutMs, tls, lines }
    sentinels.push({ host: '127.0.0.1', port: await startSentinel(place, settingsOfOne) })
  }
  const known = async (port: number) => {
    const reply = await send({ port, tls }, ['SENTINEL', 'MASTER', MASTER])
    return /num-slaves\r\n\$1\r\n1\r\n/.test(reply) && /num-other-sentinels\r\n\$1\r\n2\r\n/.test(reply)
  }
  const deadline = performance.now() + START_LIMIT_MS
  const isSynced = async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up')
  while (!(await isSynced())) {
    if (performance.now() > deadline) throw new Error('the replica did not follow the primary')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  for (const { port } of sentinels) {
    while (!(await known(port))) {
      if (performance.now() > deadline) throw new Error('the Sentinels did not find each other')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  return {
    masterName: MASTER,
    addresses: sentinels,
    primary,
    replica,
    caPem: secure?.caPem,
    async [Symbol.asyncDispose]() {
      await place.guard.close()
      await replica[Symbol.asyncDispose]()
      await primary[Symbol.asyncDispose]()
    },
  }
}

const MASTER = 'thv'

/** Certificates of another authority than that of Redis. Sentinels talk to both. */
async function sentinelCertificates(
  { folder }: Place,
  redisAuthority: Certificate,
): Promise<{ readonly caPem: string; readonly lines: readonly string[] }> {
  const ca = createCertificate({ commonName: 'thv test sentinel authority', ca: true })
  const own = createCertificate({ commonName: 'localhost', hosts: ['localhost', '127.0.0.1'], issuer: ca })
  const file = (name: string) => join(folder, `sentinel.${name}`)
  await writeFile(file('crt'), own.certPem)
  await writeFile(file('key'), own.keyPem, { mode: 0o600 })
  await writeFile(file('ca'), `${redisAuthority.certPem}${ca.certPem}`)
  const files = [`tls-cert-file ${file('crt')}`, `tls-key-file ${file('key')}`, `tls-ca-cert-file ${file('ca')}`]
  return { caPem: ca.certPem, lines: [...files, 'tls-auth-clients no', 'tls-replication yes'] }
}

interface Place {
  readonly program: string
  readonly guard: ProcessGuard
  readonly folder: string
}

async function preparePlace(): Promise<Place> {
  const program = await ensureRedis()
  const guard = startGuard()
  const folder = await mkdtemp(join(tmpdir(), guardedFolderPrefix))
  guard.removeAtEnd(folder)
  return { program, guard, folder }
}

async function runServer({ program, guard, folder }: Place, options: RedisServerOptions): Promise<TestRedis> {
  const ca = options.authority ?? createCertificate({ commonName: 'thv test redis authority', ca: true })
  const certificate = createCertificate({ commonName: 'localhost', hosts: ['localhost', '127.0.0.1'], issuer: ca })
  const files = { cert: join(folder, 'server.crt'), key: join(folder, 'server.key'), ca: join(folder, 'ca.crt') }
  await writeFile(files.cert, certificate.certPem)
  await writeFile(files.key, certificate.keyPem, { mode: 0o600 })
  await writeFile(files.ca, ca.certPem)
  const tlsArgs = ['--tls-cert-file', files.cert, '--tls-key-file', files.key, '--tls-ca-cert-file', files.ca, '--tls-auth-clients', 'no']
  const { password, tls = false, replicaOf, users = [], settings = {} } = options
  const argsFor = (port: number) => [
    ...['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder, '--daemonize', 'no'],
    ...(tls ? ['--port', '0', '--tls-port', String(port), ...tlsArgs] : ['--port', String(port)]),
    ...(password === undefined ? [] : ['--requirepass', password]),
    ...(replicaOf === undefined ? [] : ['--replicaof', replicaOf.host, String(replicaOf.port)]),
    ...users.flatMap((user) => ['--user', ...user.split(' ')]),
    ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
  ]
  const launch = (port?: number) =>
    startOnPort({
      limitMs: START_LIMIT_MS,
      port,
      start: (chosen) => startDaemon('redis-server', { command: program, args: argsFor(chosen), logFile: join(folder, 'log'), guard }),
      ready: async (chosen) => /PONG|NOAUTH/.test(await send({ port: chosen, tls }, ['PING'])),
    })
  const first = await launch()
  let daemon: Daemon = first.daemon
  const { port } = first
  return {
    host: '127.0.0.1',
    port,
    caPem: ca.certPem,
    kill: () => daemon.kill(),
    async start() {
      if (!daemon.running) daemon = (await launch(port)).daemon
    },
    freeze: () => freezeProcess(daemon.pid),
    unfreeze: () => unfreezeProcess(daemon.pid),
    command: (...words) => send({ port, tls, password }, words),
    async [Symbol.asyncDispose]() {
      await guard.close()
    },
  }
}

interface SentinelSettings {
  readonly index: number
  readonly primary: TestRedis
  readonly password: string | undefined
  readonly downAfterMs: number
  readonly failoverTimeoutMs: number
  readonly tls: boolean
  readonly lines: readonly string[]
}

async function startSentinel({ program, guard, folder }: Place, settings: SentinelSettings): Promise<number> {
  const { index, primary, password, downAfterMs, failoverTimeoutMs, tls } = settings
  const { port } = await startOnPort({
    limitMs: START_LIMIT_MS,
    start: async (chosen) => {
      const config = join(folder, `sentinel-${index}-${chosen}.conf`)
      const lines = [
        ...(tls ? ['port 0', `tls-port ${chosen}`] : [`port ${chosen}`]),
        ...settings.lines,
        'bind 127.0.0.1',
        `dir ${folder}`,
        `sentinel monitor ${MASTER} ${primary.host} ${primary.port} 2`,
        ...(password === undefined ? [] : [`sentinel auth-pass ${MASTER} ${password}`]),
        `sentinel down-after-milliseconds ${MASTER} ${downAfterMs}`,
        `sentinel failover-timeout ${MASTER} ${failoverTimeoutMs}`,
      ]
      await writeFile(config, `${lines.join('\n')}\n`)
      const logFile = join(folder, `sentinel-${index}.log`)
      return startDaemon('redis-sentinel', { command: program, args: [config, '--sentinel'], logFile, guard })
    },
    ready: async (chosen) => (await send({ port: chosen, tls }, ['PING'])).includes('PONG'),
  })
  // Ten seconds otherwise, until it knows a replica or sees that one is linked. Before Redis 7 there is no such command.
  await send({ port, tls }, ['SENTINEL', 'DEBUG', 'info-period', '500', 'publish-period', '500'])
  return port
}

/** One command as an array of bulk strings; resolves with the first chunk of its reply. */
export function send(to: { port: number; tls?: boolean; password?: string | undefined }, words: readonly string[]): Promise<string> {
  const bulk = (all: readonly string[]) => `*${all.length}\r\n${all.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: to.port }
    const socket = to.tls ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options)
    let text = ''
    // The reply to AUTH, which is not the one that is wanted. A command may have the same.
    let skips = to.password !== undefined
    socket.setTimeout(30_000, () => socket.destroy(new Error('no answer')))
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8')
      if (skips && text !== OK && OK.startsWith(text)) return // more of it comes
      if (skips && text.startsWith(OK)) {
        skips = false
        text = text.slice(OK.length)
      }
      if (text !== '') socket.end()
    })
    if (to.password !== undefined) socket.write(bulk(['AUTH', to.password]))
    socket.write(bulk(words))
  })
}

const OK = '+OK\r\n'
