import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { expect, it } from 'vitest'
import { checkWorkflow } from '../check/check-workflow.ts'
import { dryRun, workflowOutline } from './dry-run.ts'
import { workflowGraph } from './graph.ts'

const { workflow } = checkWorkflow(
  fixturesOf('virtualmcpcompositetooldefinitions').find(({ manifest }) => manifest.metadata.name === 'release')?.manifest
    .spec as CompositeTool,
)
if (!workflow) throw new Error('the example is not valid')

it('a dry run shows order, conditions and arguments as far as they are known', () => {
  expect(dryRun(workflow, { service: 'shop' })).toBe(`1. one step
   build: call ci.build {"service":"shop","options":{"version":"latest","clean":true}}
     up to 4 tries
2. one step
   ask: ask Deploy {{.params.service}}, build {{.steps.build.output.number}}?
     after build
3. one step
   deploy: call deployer_apply {"environment":"{{.steps.ask.output.content.environment}}"}
     if {{eq .steps.ask.output.action "accept"}}
     after build, ask
     goes on if it fails
4. one step
   tell: for each target of {{json .steps.deploy.output.targets}}
     call chat.post {"channel":"{{.forEach.target.channel}}","text":"{{.params.service}} was deployed ({{.forEach.index}})."}
     if {{.forEach.target.subscribed}}
     after deploy
`)
})

it('a dry run says which parameters do not fit', () => {
  expect(dryRun(workflow, {})).toBe("the parameters do not fit: must have required property 'service'\n")
})

it('an outline shows every template as it is written', () => {
  expect(workflowOutline(workflow).split('\n').slice(0, 3)).toEqual([
    '1. one step',
    '   build: call ci.build {"service":"{{.params.service}}","options":{"version":"{{.params.version}}","clean":true}}',
    '     up to 4 tries',
  ])
})

it('the graph is Mermaid', () => {
  expect(workflowGraph(workflow)).toBe(`%% release_service
flowchart TD
  s0["build<br>ci.build<br>up to 4 tries"]
  s1{{"ask<br>ask the user"}}
  s2["deploy<br>deployer_apply"]
  s3[["tell<br>each target: chat.post"]]
  s0 --> s1
  s0 -->|"{{eq .steps.ask.output.action #34;accept#34;}}"| s2
  s1 -->|"{{eq .steps.ask.output.action #34;accept#34;}}"| s2
  s2 --> s3
`)
})
