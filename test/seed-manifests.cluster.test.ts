import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { describeCluster, ensureNamespace, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { gatewayApiProblem, installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { beforeAll, expect, it } from 'vitest'
import { SEED_MANIFEST_REQUIREMENTS } from './fixtures/seeds/requirements.ts'

/* Every manifest that the design documents print applies as it is printed; parts are completed, each addition marked. */

const FOLDER = new URL('./fixtures/seeds/', import.meta.url)
const yamlIn = (folder: string) =>
  readdirSync(new URL(folder, FOLDER))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => `${folder}${name}`)
/** Those of the last folder need the Gateway API. */
const FILES = [...yamlIn('./'), ...(gatewayApiProblem() === undefined ? yamlIn('./gateway/') : [])]

describeCluster('manifests of the design documents', () => {
  beforeAll(async () => {
    const client = adminClient(sharedCluster())
    await installCrds(client)
    if (gatewayApiProblem() === undefined) await installGatewayApi(client)
    const namespaces = new Set(
      FILES.flatMap((file) => manifestsIn(readFileSync(new URL(file, FOLDER), 'utf8')).map((each) => each.metadata.namespace)),
    )
    for (const namespace of namespaces) if (namespace) await ensureNamespace(namespace)
    await client.close()
  })

  it.each(
    FILES.map(
      (file) =>
        [`${file.slice(2)} ${(SEED_MANIFEST_REQUIREMENTS[file.slice(2)] ?? []).map((id) => `[${id}]`).join(' ')}`.trim(), file] as const,
    ),
  )('%s', (_title, file) => {
    const access = sharedCluster()
    const path = fileURLToPath(new URL(file, FOLDER))
    const apply = () =>
      spawnSync(access.kubectlPath, ['--kubeconfig', access.kubeconfigPath, 'apply', '--dry-run=server', '--validate=strict', '-f', path], {
        encoding: 'utf8',
        timeout: 60_000,
      })
    // kubectl looks first whether the object is there: another test may make or delete one of that name in between.
    const first = apply()
    const { stdout, stderr, status } = /\((?:AlreadyExists|NotFound|Conflict)\)/.test(first.stderr) ? apply() : first
    // Another test may have made the object of that name meanwhile, without kubectl.
    expect(stderr.replaceAll(/^Warning: .* is missing the kubectl\.kubernetes\.io\/last-applied-configuration annotation .*\n/gm, '')).toBe(
      '',
    )
    expect(status).toBe(0)
    expect(stdout.trim().split('\n')).toHaveLength(manifestsIn(readFileSync(path, 'utf8')).length)
  })
})
