import { randomBytes } from 'node:crypto'
import { bearerToken, createKubeClient } from '@thv/kube'
import { describeCluster, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { expect, it } from 'vitest'
import { scenarioSets } from './scenario-sets.ts'
import { runAll } from './testing/recorded-scenarios.ts'

const record = process.env['RECORD'] !== undefined

/** Compares the recordings with the real controllers; RECORD=1 writes them instead. */
describeCluster('recordings of the real controllers', () => {
  it.each(scenarioSets)(
    '$name: the recording matches the real controllers',
    async ({ set, file, name }) => {
      const { url, caPem, adminToken } = sharedCluster()
      const client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) })
      const plane = { client, prefix: `${name}-${randomBytes(4).toString('hex')}` }
      const patience = { stillMs: record ? (set.restMs ?? 4_000) : 1_000, limitMs: 60_000 }
      const { seen, goldens } = await runAll(plane, { set, file, record, patience })
      await client.close()
      for (const [scenario, looks] of Object.entries(seen)) expect(looks, scenario).toEqual(goldens[scenario])
      expect(Object.keys(seen)).toEqual(Object.keys(goldens))
    },
    600_000,
  )
})
