import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Helm, openHelm } from '@thv/testkit/helm/helm'
import { ROOT } from './run.ts'

/*
 * node scripts/manifests.ts: writes deploy/manifests/operator.yaml, the operator's chart with its default values, for people without
 * helm, and local-operator.yaml beside it, with the values of the platform that `thv up` starts. It needs helm and is therefore no part of
 * "npm run generate"; a test of the charts fails when a file is stale.
 */

export const OPERATOR_MANIFESTS = 'deploy/manifests/operator.yaml'
/** Its registry lists the servers of all namespaces. */
export const LOCAL_OPERATOR_MANIFESTS = 'deploy/manifests/local-operator.yaml'
export const LOCAL_VALUES: readonly string[] = ['operator.registry.exportNamespaces={*}']
const NAMESPACE = 'toolhive-system'

export async function operatorManifests(helm: Pick<Helm, 'template'>, set: readonly string[] = []): Promise<string> {
  const rendered = await helm.template({
    name: 'toolhive-operator',
    chart: join(ROOT, 'deploy/charts/toolhive-operator'),
    namespace: NAMESPACE,
    set,
  })
  return HEADER + rendered.split('\n').filter(isOurs).join('\n')
}

/** Comments of helm mean nothing to users of plain manifests. */
function isOurs(line: string): boolean {
  return !/^# Source: |^ *helm\.sh\/chart: |^ *app\.kubernetes\.io\/managed-by: Helm$/.test(line)
}

const HEADER = `# Made of deploy/charts/toolhive-operator by "node scripts/manifests.ts". Do not edit.
# Install the definitions of deploy/crds first. Set your image in four places: the container and the three variables that name it.
apiVersion: v1
kind: Namespace
metadata:
  name: ${NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
`

if (import.meta.main) {
  const helm = await openHelm()
  for (const [file, set] of [[OPERATOR_MANIFESTS, []] as const, [LOCAL_OPERATOR_MANIFESTS, LOCAL_VALUES] as const]) {
    const path = join(ROOT, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, await operatorManifests(helm, set))
    console.log(`wrote ${file}`)
  }
}
