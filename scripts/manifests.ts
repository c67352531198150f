import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Helm, openHelm } from '@thv/testkit/helm/helm'
import { ROOT } from './run.ts'

/*
 * node scripts/manifests.ts: writes deploy/manifests/operator.yaml, the operator's chart with its default values, for people without
 * helm. It needs helm and is therefore no part of "npm run generate"; a test of the charts fails when the file is stale.
 */

export const OPERATOR_MANIFESTS = 'deploy/manifests/operator.yaml'
const NAMESPACE = 'toolhive-system'

export async function operatorManifests(helm: Pick<Helm, 'template'>): Promise<string> {
  const rendered = await helm.template({
    name: 'toolhive-operator',
    chart: join(ROOT, 'deploy/charts/toolhive-operator'),
    namespace: NAMESPACE,
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
  const path = join(ROOT, OPERATOR_MANIFESTS)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, await operatorManifests(await openHelm()))
  console.log(`wrote ${OPERATOR_MANIFESTS}`)
}
