import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { request } from './http-request.ts'
import { type Daemon, startDaemon } from './process/daemon.ts'
import type { ProcessGuard } from './process/process-guard.ts'
import { startOnPort } from './process/start-on-port.ts'

export interface Etcd {
  readonly url: string
  readonly daemon: Daemon
  /** Forgets all history before the current revision; returns when it is gone from the disk. */
  compact(): Promise<void>
}

export interface EtcdOptions {
  readonly command: string
  readonly folder: string
  readonly guard: ProcessGuard
  readonly limitMs: number
  /** Waits for the disk at every write, as in production. Tests need no power loss to be survived. */
  readonly fsync?: boolean
}

export async function startEtcd({ command, folder, guard, limitMs, fsync = false }: EtcdOptions): Promise<Etcd> {
  const name = `test-${randomUUID()}`
  const { daemon, port } = await startOnPort({
    limitMs,
    start: (port) =>
      startDaemon('etcd', {
        command,
        args: [...flags(name, join(folder, 'etcd'), port), ...(fsync ? [] : ['--unsafe-no-fsync'])],
        logFile: join(folder, 'etcd.log'),
        guard,
      }),
    // The list of members is read through the leader, so it also says that writes are possible.
    ready: async (port) => {
      const answer = await request(`http://127.0.0.1:${port}/v3/cluster/member/list`, { method: 'POST', body: {}, limitMs: 10_000 })
      return answer.status === 200 && answer.json<{ members?: { name?: string }[] }>().members?.[0]?.name === name
    },
  })
  const url = `http://127.0.0.1:${port}`
  return { url, daemon, compact: () => compact(url) }
}

function flags(name: string, dataFolder: string, port: number): string[] {
  const url = `http://127.0.0.1:${port}`
  return [
    `--name=${name}`,
    `--data-dir=${dataFolder}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    '--listen-peer-urls=http://127.0.0.1:0',
    `--initial-cluster=${name}=http://localhost:2380`,
    // One member waits a whole election time-out before it elects itself: 1 s by default.
    '--heartbeat-interval=20',
    '--election-timeout=100',
    '--log-level=warn',
  ]
}

async function compact(url: string): Promise<void> {
  const post = (path: string, body: object) => request(`${url}${path}`, { method: 'POST', body, limitMs: 30_000 })
  const range = await post('/v3/kv/range', { key: Buffer.from('none').toString('base64') })
  const revision = range.json<{ header?: { revision?: string } }>().header?.revision
  if (revision === undefined) throw new Error(`etcd named no revision: ${range.text}`)
  const answer = await post('/v3/kv/compaction', { revision, physical: true })
  // Nothing was written since the last compaction.
  if (answer.status !== 200 && !answer.text.includes('has been compacted')) throw new Error(`etcd did not compact: ${answer.text}`)
}
