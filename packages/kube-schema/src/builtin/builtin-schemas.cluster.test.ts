import { apiRequest } from '@thv/testkit/cluster/http-request'
import { describeCluster, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { expect, it } from 'vitest'
import { generateBuiltinSchemas } from './generate-builtin-schemas.ts'

/* `vitest run --project cluster <this file> -u` writes the file again after a new version of Kubernetes. */

describeCluster('built-in schemas', () => {
  it('are those of the real server', async () => {
    const schemas = await generateBuiltinSchemas(async (path) => {
      const { status, text } = await apiRequest(sharedCluster(), path)
      expect(status).toBe(200)
      return JSON.parse(text) as unknown
    })
    await expect(schemas).toMatchFileSnapshot('./builtin-schemas.generated.json')
  })
})
