import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClusterAccess } from './cluster-access.ts'
import { type Etcd, startEtcd } from './etcd.ts'
import { request } from './http-request.ts'
import { createCertificate } from './identity/certificate.ts'
import { type Credentials, writeCredentials, writeKubeconfig } from './identity/credentials.ts'
import { mintServiceAccountToken, serviceAccountIssuer } from './identity/service-account-token.ts'
import { type Daemon, startDaemon } from './process/daemon.ts'
import { guardedFolderPrefix, type ProcessGuard, startGuard } from './process/process-guard.ts'
import { startOnPort } from './process/start-on-port.ts'
import { type Binaries, ensureBinaries } from './programs/binaries.ts'
import type { ProgramSet } from './programs/programs.ts'
import { createServerHandle, type RunningServer, type TestServer } from './server-handle.ts'

export type { ClusterAccess } from './cluster-access.ts'
export type { TokenOptions } from './identity/service-account-token.ts'

/** A real kube-apiserver with its own etcd on loopback. No controllers, no scheduler, no node. */
export interface ApiServer extends TestServer {
  readonly etcdUrl: string
}

export interface ApiServerOptions {
  /** Resources without a watch cache, for example ['configmaps']. */
  readonly uncachedResources?: readonly string[]
  /** After our own flags, so that they win. */
  readonly extraArgs?: readonly string[]
  readonly startLimitMs?: number
  /** Of etcd. Default false: tests need not survive a loss of power. */
  readonly fsync?: boolean
  /** Hears the progress of a build of the binaries. */
  readonly log?: (line: string) => void
}

export function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  return startForm(plainForm, options)
}

/** Additions of the bigger forms of the harness to an API server. */
export interface ClusterForm {
  readonly programs: ProgramSet
  /** Where the API server listens. */
  readonly address: string
  readonly services: ServiceRange
  /** Further flags of the API server, once its authority is there. */
  flags(credentials: Credentials): Promise<readonly string[]>
  /** Starts what runs beside the ready API server. It is ended before it. */
  startCompanions(parts: CompanionParts): Promise<readonly Daemon[]>
}

export interface ServiceRange {
  readonly range: string
  /** Its first address, which the Service `kubernetes` gets. */
  readonly first: string
}

export interface CompanionParts extends Parts {
  readonly access: ClusterAccess
  readonly limitMs: number
}

export const loopbackServices: ServiceRange = { range: '10.0.0.0/16', first: '10.0.0.1' }

const plainForm: ClusterForm = {
  programs: 'api-server',
  address: '127.0.0.1',
  services: loopbackServices,
  // No program runs behind the `kubernetes` Service, and none creates the `default` accounts that the plugin waits for.
  flags: async () => ['--endpoint-reconciler-type=none', '--disable-admission-plugins=ServiceAccount'],
  startCompanions: async () => [],
}

/** For the other forms of the harness; a test takes startApiServer, startControlPlane or startNode. */
export async function startForm(form: ClusterForm, options: ApiServerOptions): Promise<ApiServer> {
  const { startLimitMs = 90_000 } = options
  const binaries = await ensureBinaries({ set: form.programs, log: options.log ?? ((line) => console.error(line)) })
  const folder = await mkdtemp(join(tmpdir(), `${guardedFolderPrefix}api-`))
  const guard = startGuard()
  try {
    guard.removeAtEnd(folder)
    const credentials = await writeCredentials(folder, [form.address, form.services.first])
    const formFlags = await form.flags(credentials)
    const etcd = await startEtcd({ command: binaries.path('etcd'), folder, guard, limitMs: startLimitMs, fsync: options.fsync ?? false })
    const start = (port?: number) =>
      startKubeApiserver({ binaries, folder, guard, credentials, etcd, form, formFlags, options, port, limitMs: startLimitMs })
    const first = await start()
    const parts = { binaries, folder, guard, credentials, etcd }
    const access = await describeAccess(parts, `https://${form.address}:${first.port}`, form.programs)
    const companions = await form.startCompanions({ ...parts, access, limitMs: startLimitMs })
    return createHandle({ ...parts, access, companions, first, start })
  } catch (error) {
    // The guard kills what it watches and removes the folder.
    await guard.close()
    throw error
  }
}

interface Parts {
  readonly binaries: Binaries
  readonly folder: string
  readonly guard: ProcessGuard
  readonly credentials: Credentials
  readonly etcd: Etcd
}

async function describeAccess({ folder, credentials, binaries }: Parts, url: string, form: ProgramSet): Promise<ClusterAccess> {
  const { adminToken, ca } = credentials
  const kubeconfigPath = join(folder, 'kubeconfig')
  await writeKubeconfig(kubeconfigPath, { url, caPem: ca.certPem, token: adminToken })
  const version = (await request(`${url}/version`, { caPem: ca.certPem })).json<{ gitVersion: string }>().gitVersion
  return { plane: 'kubernetes', form, url, caPem: ca.certPem, adminToken, kubeconfigPath, kubectlPath: binaries.path('kubectl'), version }
}

interface HandleParts extends Parts {
  readonly access: ClusterAccess
  readonly companions: readonly Daemon[]
  readonly first: RunningServer
  readonly start: (port: number) => Promise<RunningServer>
}

function createHandle({ access, companions, folder, guard, credentials, etcd, first, start }: HandleParts): ApiServer {
  const handle = createServerHandle({
    access,
    folder,
    guard,
    first,
    start,
    companions,
    foundation: [etcd.daemon],
    compact: etcd.compact,
    mintToken: (options) => mintServiceAccountToken(credentials.serviceAccountKey, options),
    clientCertificate: (user, groups = []) => createCertificate({ commonName: user, organizations: groups, issuer: credentials.ca }),
  })
  return Object.defineProperties(handle, { etcdUrl: { value: etcd.url, enumerable: true } }) as ApiServer
}

interface StartOptions extends Parts {
  readonly form: ClusterForm
  readonly formFlags: readonly string[]
  readonly options: ApiServerOptions
  readonly port: number | undefined
  readonly limitMs: number
}

function startKubeApiserver(start: StartOptions): Promise<RunningServer> {
  const { binaries, folder, guard, credentials, form, port, limitMs } = start
  const logFile = join(folder, 'kube-apiserver.log')
  const caPem = credentials.ca.certPem
  const authorization = `Bearer ${credentials.adminToken}`
  return startOnPort({
    address: form.address,
    port,
    limitMs,
    start: (free) => startDaemon('kube-apiserver', { command: binaries.path('kube-apiserver'), args: flags(start, free), logFile, guard }),
    // Our authority alone vouches for it, so no stranger's server is taken for ours. /readyz does not wait for namespaces.
    ready: async (free) => {
      const get = (path: string) => request(`https://${form.address}:${free}${path}`, { caPem, headers: { authorization }, limitMs: 5000 })
      return (await get('/readyz')).status === 200 && (await get('/api/v1/namespaces/default')).status === 200
    },
  })
}

function flags({ credentials, etcd, form, formFlags, options, folder }: StartOptions, port: number): string[] {
  const { files } = credentials
  const uncached = options.uncachedResources ?? []
  return [
    `--etcd-servers=${etcd.url}`,
    `--bind-address=${form.address}`,
    `--advertise-address=${form.address}`,
    `--secure-port=${port}`,
    `--cert-dir=${join(folder, 'pki')}`,
    `--tls-cert-file=${files.serverCert}`,
    `--tls-private-key-file=${files.serverKey}`,
    `--client-ca-file=${files.ca}`,
    `--token-auth-file=${files.tokens}`,
    '--authorization-mode=Node,RBAC',
    `--service-account-issuer=${serviceAccountIssuer}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    `--service-account-key-file=${files.serviceAccountPublicKey}`,
    '--allow-privileged=true',
    '--profiling=false',
    `--service-cluster-ip-range=${form.services.range}`,
    ...formFlags,
    ...(uncached.length > 0 ? [`--watch-cache-sizes=${uncached.map((resource) => `${resource}#0`).join(',')}`] : []),
    ...(options.extraArgs ?? []),
  ]
}
