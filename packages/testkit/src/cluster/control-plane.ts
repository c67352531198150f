import { join } from 'node:path'
import { type ApiServer, type ApiServerOptions, type CompanionParts, loopbackServices, startForm } from './api-server.ts'
import { waitForDefaultAccount } from './default-account.ts'
import { createCertificate } from './identity/certificate.ts'
import { writeKubeconfig } from './identity/credentials.ts'
import { type Daemon, startDaemon } from './process/daemon.ts'

/**
 * A real control plane: an API server with the controller manager and the scheduler, so owners take their dependents with them,
 * Deployments and StatefulSets make pods, namespaces end, accounts appear. No node: pods stay Pending.
 */
export type ControlPlane = ApiServer

export function startControlPlane(options: ApiServerOptions = {}): Promise<ControlPlane> {
  return startForm(
    {
      programs: 'control-plane',
      address: '127.0.0.1',
      services: loopbackServices,
      flags: async () => ['--endpoint-reconciler-type=none'],
      // Pods that never run need no ConfigMap with the authority, and tests like their namespaces empty.
      startCompanions: (parts) => startControllers(parts, ['--controllers=*,-root-ca-certificate-publisher-controller']),
    },
    options,
  )
}

/** The API server must be ready: started before its roles are there, the controller manager gives up. */
export async function startControllers(parts: CompanionParts, managerFlags: readonly string[] = []): Promise<readonly Daemon[]> {
  const { files } = parts.credentials
  const manager = startWithKubeconfig(parts, 'kube-controller-manager', [
    '--use-service-account-credentials',
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${files.ca}`,
    // A test waits for each step of a chain of controllers; production's limits are for clusters with other clients.
    '--kube-api-qps=200',
    '--kube-api-burst=400',
    ...managerFlags,
  ])
  const daemons = await Promise.all([manager, startWithKubeconfig(parts, 'kube-scheduler', [])])
  const failure = Promise.race(daemons.map(async (daemon) => `${await daemon.ended}; its last lines:\n${daemon.logTail()}`))
  const ready = waitForDefaultAccount('default', parts.access, parts.limitMs)
  const problem = await Promise.race([ready.then(() => undefined), failure])
  if (problem !== undefined) throw new Error(problem)
  return daemons
}

/** As the user of that name, whose rights the API server knows, and without ports: their health is not checked here. */
async function startWithKubeconfig(
  parts: CompanionParts,
  name: 'kube-controller-manager' | 'kube-scheduler',
  args: readonly string[],
): Promise<Daemon> {
  const { folder, guard, access, binaries, credentials } = parts
  const kubeconfig = join(folder, `${name}.kubeconfig`)
  const certificate = createCertificate({ commonName: `system:${name}`, issuer: credentials.ca })
  await writeKubeconfig(kubeconfig, { url: access.url, caPem: access.caPem, certificate })
  const own = [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0', '--profiling=false', ...args]
  return startDaemon(name, { command: binaries.path(name), args: own, logFile: join(folder, `${name}.log`), guard })
}
