import { readFileSync } from 'node:fs'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { expect, it } from 'vitest'
import { planMcpServer } from '../apps/operator/src/controllers/mcp-server/plan.ts'
import { fixtureLookup, planFacts } from '../apps/operator/src/testing/fixture-namespace.ts'
import { runConfigOf } from '../apps/operator/src/testing/plan-checks.ts'
import { desiredObjects } from '../apps/proxyrunner/src/runtime/kubernetes/desired-objects.ts'

/* The example from its manifest through the operator's RunConfig to the runner's StatefulSet. */

const FILE = new URL('../deploy/examples/operator/mcp-servers/mcpserver_with_pod_template.yaml', import.meta.url)

it('the pod customizations of mcpserver_with_pod_template.yaml reach the MCP pod [002-076]', () => {
  const [example] = manifestsIn(readFileSync(FILE, 'utf8')) as [MCPServer & { spec: { podTemplateSpec: Template } }]
  const server = { ...example, metadata: { ...example.metadata, namespace: 'team', uid: 'uid', generation: 1 } }
  const read = readRunConfig(runConfigOf(planMcpServer({ ...planFacts(), lookup: fixtureLookup, server })) ?? {})
  if (!read.ok) throw new Error(JSON.stringify(read.problems))
  const template = desiredObjects(read.config, { namespace: 'team' }).statefulSet.spec?.template as unknown as Template
  const { metadata, spec } = example.spec.podTemplateSpec
  expect(template.metadata).toMatchObject(metadata)
  expect(template.spec).toMatchObject({ nodeSelector: spec.nodeSelector, tolerations: spec.tolerations })
  expect(template.spec.volumes).toEqual(expect.arrayContaining(spec.volumes))
  expect(template.spec.containers.map(({ name }) => name)).toEqual(['mcp', 'index-updater'])
  for (const { name, resources, volumeMounts } of spec.containers) {
    const container = template.spec.containers.find((each) => each.name === name)
    expect(container).toMatchObject({ volumeMounts: expect.arrayContaining(volumeMounts), ...(resources !== undefined && { resources }) })
  }
})

interface Template {
  metadata: { annotations: Record<string, string> }
  spec: {
    nodeSelector: object
    tolerations: object[]
    volumes: object[]
    containers: { name: string; resources?: object; volumeMounts: object[] }[]
  }
}
