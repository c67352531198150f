import { fileURLToPath } from 'node:url'
import { openHelm } from '@thv/testkit/helm/helm'

export interface InstalledOperator {
  readonly namespace: string
  readonly deployment: string
}

export interface InstallOptions {
  readonly kubeconfigPath: string
  /** Of all programs; the cluster has it already. */
  readonly image: string
  readonly replicas?: number
}

const chart = (name: string): string => fileURLToPath(new URL(`../../deploy/charts/${name}`, import.meta.url))

/** Both charts, as the README tells people to install them; back when the operator is available. */
export async function installOperator({ kubeconfigPath, image, replicas = 2 }: InstallOptions): Promise<InstalledOperator> {
  const namespace = 'toolhive-system'
  const helm = await openHelm()
  const install = async (release: string, name: string, ...more: string[]) => {
    const place = ['--namespace', namespace, '--create-namespace', '--kubeconfig', kubeconfigPath]
    const { code, stderr } = await helm.run([
      'upgrade',
      '--install',
      release,
      chart(name),
      ...place,
      '--wait',
      '--timeout',
      '240s',
      ...more,
    ])
    if (code !== 0) throw new Error(`helm could not install ${name} (${code}): ${stderr}`)
  }
  await install('toolhive-operator-crds', 'toolhive-operator-crds')
  const values = { image, toolhiveRunnerImage: image, imagePullPolicy: 'IfNotPresent', replicaCount: replicas }
  const set = Object.entries(values).flatMap(([key, value]) => ['--set', `operator.${key}=${value}`])
  await install('toolhive-operator', 'toolhive-operator', ...set)
  return { namespace, deployment: 'toolhive-operator' }
}
