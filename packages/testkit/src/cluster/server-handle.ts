import { rm } from 'node:fs/promises'
import type { ClusterAccess } from './cluster-access.ts'
import { apiRequest } from './http-request.ts'
import type { Certificate } from './identity/certificate.ts'
import type { TokenOptions } from './identity/service-account-token.ts'
import type { Daemon } from './process/daemon.ts'
import { freezeProcess, unfreezeProcess } from './process/process-freeze.ts'
import type { ProcessGuard } from './process/process-guard.ts'

/** An API server that belongs to one test, which may do anything to it. Real or ours. */
export interface TestServer extends ClusterAccess, AsyncDisposable {
  /** Of everything that runs for this server, the guard included. */
  readonly pids: readonly number[]
  /** SIGKILL to the API server; a real one's etcd lives on. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open and, once this returns, nothing answers. */
  freeze(): void
  unfreeze(): void
  /** Same address, certificates, tokens and data. Ends the running one first. */
  restart(): Promise<void>
  /** Forgets the history. On a real one a watch answers 410 only for `uncachedResources`: others are served from the watch cache. */
  compact(): Promise<void>
  /** Signed with the server's own key; see TokenOptions for what the server demands. */
  mintToken(options: TokenOptions): string
  /** Creates the ServiceAccount when it is missing and mints a token for it. */
  serviceAccountToken(account: { namespace: string; name: string; expiresInSeconds?: number; audiences?: string[] }): Promise<string>
  /** A client certificate for this user. A test that asks for one needs `client-certificates`. */
  clientCertificate(user: string, groups?: readonly string[]): Certificate
  /** Ends all processes and removes the data. May be called again. */
  stop(): Promise<void>
}

export interface RunningServer {
  readonly daemon: Daemon
  readonly port: number
}

export interface ServerParts extends Pick<TestServer, 'compact' | 'mintToken' | 'clientCertificate'> {
  readonly access: ClusterAccess
  readonly folder: string
  readonly guard: ProcessGuard
  readonly first: RunningServer
  readonly start: (port: number) => Promise<RunningServer>
  /** Ended before the API server. */
  readonly companions: readonly Daemon[]
  /** Ended after it. */
  readonly foundation: readonly Daemon[]
}

const stopGraceMs = 3000

export function createServerHandle(parts: ServerParts): TestServer {
  const { access, companions, foundation, folder, guard, first, start, compact, mintToken, clientCertificate } = parts
  let daemon = first.daemon
  let frozen = false
  let stopping: Promise<void> | undefined

  // A frozen process does not see SIGTERM.
  const end = () => (frozen ? daemon.kill() : daemon.stop(stopGraceMs))
  const stop = async () => {
    await Promise.all(companions.map((each) => each.stop(stopGraceMs)))
    await end()
    for (const each of foundation) await each.stop(stopGraceMs)
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    await guard.close()
  }
  const stopOnce = () => {
    stopping ??= stop()
    return stopping
  }

  return {
    ...access,
    get pids() {
      return [daemon.pid, ...foundation.map((each) => each.pid), guard.pid, ...companions.map((each) => each.pid)]
    },
    kill: () => daemon.kill(),
    freeze: () => {
      if (!daemon.running) throw new Error(`${daemon.name} does not run`)
      frozen = true
      freezeProcess(daemon.pid)
    },
    unfreeze: () => {
      frozen = false
      if (daemon.running) unfreezeProcess(daemon.pid)
    },
    restart: async () => {
      if (stopping) throw new Error('a stopped API server cannot be restarted')
      await end()
      frozen = false
      daemon = (await start(first.port)).daemon
    },
    compact,
    mintToken,
    serviceAccountToken: async ({ namespace, name, expiresInSeconds = 3600, audiences }) => {
      const uid = await ensureServiceAccount(access, namespace, name)
      const subject = `system:serviceaccount:${namespace}:${name}`
      return mintToken({ subject, uid, expiresInSeconds, ...(audiences ? { audiences } : {}) })
    },
    clientCertificate,
    stop: stopOnce,
    [Symbol.asyncDispose]: stopOnce,
  }
}

async function ensureServiceAccount(access: ClusterAccess, namespace: string, name: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts`
  const created = await apiRequest(access, path, { method: 'POST', body: { metadata: { name } } })
  const answer = created.status === 409 ? await apiRequest(access, `${path}/${name}`) : created
  const uid = answer.json<{ metadata?: { uid?: string } }>().metadata?.uid
  if (uid === undefined) throw new Error(`no ServiceAccount ${namespace}/${name}: ${answer.text}`)
  return uid
}
