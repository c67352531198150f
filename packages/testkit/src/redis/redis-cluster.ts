import { createServer } from 'node:net'
import { type RedisServerOptions, send, startRedis, type TestRedis } from './redis.ts'

/** A Redis Cluster on loopback: three primaries, and a replica of each. */
export interface TestRedisCluster extends AsyncDisposable {
  readonly nodes: readonly TestRedis[]
  /** The node that has the slot of this key now. */
  primaryOf(key: string): Promise<TestRedis>
}

const LIMIT_MS = 60_000
const SLOTS = 16_384

export async function startRedisCluster(options: Pick<RedisServerOptions, 'password'> = {}): Promise<TestRedisCluster> {
  await using stack = new AsyncDisposableStack()
  const nodes: TestRedis[] = []
  for (let i = 0; i < 6; i++) nodes.push(stack.use(await startRedis({ ...options, settings: await settingsOf(options) })))
  const [first, ...others] = nodes as [TestRedis, ...TestRedis[]]
  for (const [index, node] of nodes.slice(0, 3).entries()) {
    const from = Math.floor((SLOTS / 3) * index)
    await expectOk(node.command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(Math.floor((SLOTS / 3) * (index + 1)) - 1)))
  }
  const bus = await busPort(first)
  for (const node of others) await expectOk(node.command('CLUSTER', 'MEET', first.host, String(first.port), bus))
  await until(async () => (await Promise.all(nodes.map((node) => info(node)))).every((text) => text.includes('cluster_known_nodes:6')))
  for (const [index, node] of nodes.slice(3).entries()) {
    const id = bulk(await (nodes[index] as TestRedis).command('CLUSTER', 'MYID'))
    await until(async () => (await node.command('CLUSTER', 'REPLICATE', id)).startsWith('+OK'))
  }
  const isLinked = async (node: TestRedis) => (await node.command('INFO', 'replication')).includes('master_link_status:up')
  await until(async () => (await Promise.all(nodes.slice(3).map(isLinked))).every(Boolean))
  await until(async () => (await Promise.all(nodes.map((node) => info(node)))).every((text) => text.includes('cluster_state:ok')))
  const owned = stack.move()
  return {
    nodes,
    async primaryOf(key) {
      for (const node of nodes) {
        // A node without the slot answers where it is.
        const reply = await send({ port: node.port, password: options.password }, ['GET', key]).catch(() => '')
        const port = Number(/^-MOVED \d+ \S*:(\d+)/.exec(reply)?.[1] ?? (reply === '' ? 0 : node.port))
        const found = nodes.find((each) => each.port === port)
        if (found !== undefined) return found
      }
      throw new Error('no node knows the slot')
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function settingsOf({ password }: Pick<RedisServerOptions, 'password'>): Promise<Record<string, string>> {
  return {
    'cluster-enabled': 'yes',
    'cluster-port': String(await freePort()),
    // A machine that stands still for a moment is no failure of a node.
    'cluster-node-timeout': '3000',
    ...(password !== undefined && { masterauth: password }),
  }
}

/** The bus of Redis is 10,000 ports above its own, unless one is given: that may be no port at all. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function busPort(node: TestRedis): Promise<string> {
  return /cluster-port\r\n\$\d+\r\n(\d+)/.exec(await node.command('CONFIG', 'GET', 'cluster-port'))?.[1] ?? ''
}

const info = (node: TestRedis) => node.command('CLUSTER', 'INFO')

function bulk(reply: string): string {
  return reply.split('\r\n')[1] ?? ''
}

async function expectOk(reply: Promise<string>): Promise<void> {
  const text = await reply
  if (!text.startsWith('+OK')) throw new Error(text)
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LIMIT_MS
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('the cluster did not form')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
