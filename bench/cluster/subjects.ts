import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApiServer } from '@thv/testkit/cluster/api-server'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { startMeasured } from '../proxy/measured-process.ts'

/** An API server to be measured. */
export interface Subject extends AsyncDisposable {
  readonly name: string
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
  /** From the start of its processes until it answered, in seconds. */
  readonly startSeconds: number
  /** Of all its processes. */
  rssMb(): Promise<number>
}

export async function startOurs(): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-cluster-'))
  const script = 'bench/cluster/api-server-main.ts'
  await ensureBundle(script) // which is no part of a start
  const started = performance.now()
  const server = await startMeasured({ script, args: [folder] })
  const [, json = ''] = await server.line(/^ready (.*)$/)
  const startSeconds = (performance.now() - started) / 1000
  return {
    name: 'embedded',
    ...(JSON.parse(json) as { url: string; caPem: string; adminToken: string }),
    startSeconds,
    rssMb: () => residentMb([server.pid]),
    [Symbol.asyncDispose]: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** kube-apiserver with etcd. With `fsync`, etcd waits for the disk at every write, as in production; ours does not, and says so. */
export async function startReal({ fsync }: { fsync: boolean }): Promise<Subject> {
  const started = performance.now()
  const server = await startApiServer({ fsync })
  const startSeconds = (performance.now() - started) / 1000
  return {
    name: fsync ? 'real, etcd with fsync' : 'real, etcd without fsync',
    url: server.url,
    caPem: server.caPem,
    adminToken: server.adminToken,
    startSeconds,
    // The first two are the server and etcd; the third is the harness's own guard.
    rssMb: () => residentMb(server.pids.slice(0, 2)),
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

export async function residentMb(pids: readonly number[]): Promise<number> {
  const sizes = await Promise.all(
    pids.map(async (pid) => Number(/^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)),
  )
  return sizes.reduce((sum, each) => sum + each, 0) / 1024
}
