import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import { describe, expect, it } from 'vitest'
import { checkWorkflow } from '../check/check-workflow.ts'
import { type ToolHints, workflowAnnotations } from './annotations.ts'

const SAFE: ToolHints = { readOnlyHint: true, openWorldHint: false }
const GENTLE: ToolHints = { readOnlyHint: false, destructiveHint: false, openWorldHint: false }
const DANGEROUS: ToolHints = { destructiveHint: true }
const HINTS: Readonly<Record<string, ToolHints>> = {
  safe: SAFE,
  gentle: GENTLE,
  dangerous: DANGEROUS,
  again: { ...DANGEROUS, idempotentHint: true },
}

function judge(tools: readonly string[], annotations?: CompositeTool['annotations'], onError = {}) {
  const steps = tools.map((tool, index) => ({ id: `s${index}`, tool, onError }))
  const { workflow } = checkWorkflow({ name: 't', description: 'T.', steps, ...(annotations && { annotations }) })
  if (!workflow) throw new Error('not valid')
  return workflowAnnotations(workflow, (tool) => HINTS[tool])
}

describe('workflowAnnotations', () => {
  it.each<[string[], ToolHints]>([
    [['safe', 'safe'], { readOnlyHint: true, destructiveHint: false, openWorldHint: false }],
    [['safe', 'gentle'], { readOnlyHint: false, destructiveHint: false, openWorldHint: false }],
    [['safe', 'dangerous'], { readOnlyHint: false, destructiveHint: true, openWorldHint: true }],
    [['safe', 'unknown'], { readOnlyHint: false, destructiveHint: true, openWorldHint: true }],
  ])('%j give the worst of their hints', (tools, expected) => {
    expect(judge(tools)).toEqual({ annotations: expected, warnings: [] })
  })

  it('a definition may warn more, never less', () => {
    expect(judge(['safe'], { title: 'T', readOnlyHint: false, destructiveHint: true }).annotations).toEqual({
      title: 'T',
      readOnlyHint: false,
      destructiveHint: true,
      openWorldHint: false,
    })
    const { annotations, warnings } = judge(['dangerous'], { readOnlyHint: true, destructiveHint: false, openWorldHint: false })
    expect(annotations).toEqual({ readOnlyHint: false, destructiveHint: true, openWorldHint: true })
    expect(warnings).toEqual([
      'annotations.readOnlyHint: true promises more than the tools of the steps; clients see false',
      'annotations.destructiveHint: false promises more than the tools of the steps; clients see true',
      'annotations.openWorldHint: false promises more than the tools of the steps; clients see true',
    ])
  })

  it('warns of retries of what must not be repeated', () => {
    expect(judge(['dangerous', 'again', 'safe', 'unknown'], undefined, { retryCount: 2 }).warnings).toEqual([
      'spec.steps[0].onError (step s0): repeats a tool that is destructive and not idempotent',
    ])
    expect(judge(['dangerous']).warnings).toEqual([])
  })
})
