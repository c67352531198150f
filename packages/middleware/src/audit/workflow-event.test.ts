import { readFileSync } from 'node:fs'
import { TestClock } from '@thv/kernel/clock'
import { WORKFLOW_EVENT_TYPES } from '@thv/runconfig/audit-config'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, it } from 'vitest'
import { workflowEvent } from './workflow-event.ts'

const SCHEMA = JSON.parse(readFileSync(new URL('../../../../docs/reference/audit-event.schema.json', import.meta.url), 'utf8'))

it.each(WORKFLOW_EVENT_TYPES)('an event %s is a line of the audit log, as its schema says', (type) => {
  const ajv = new Ajv2020({ strict: false, formats: { 'date-time': true, uuid: true } })
  const identity = { subject: 'ada', issuer: 'https://idp.example.com', provider: 'corp', claims: {} }
  const step = type.startsWith('workflow_step') ? 'first' : undefined
  const error = type.includes('failed') ? 'Bearer swordfish-0123456789abcdef was refused' : undefined
  const source = { component: 'x', backend: 'desk', clock: new TestClock() }
  const line = JSON.parse(
    JSON.stringify(workflowEvent({ type, tool: 'greeting', id: 'run-1', step, error, identity, durationMs: 12.3456 }, source)),
  )
  expect(ajv.validate(SCHEMA, line), JSON.stringify(ajv.errors)).toBe(true)
  expect(line).toMatchObject({
    ...{ type, outcome: type === 'workflow_timed_out' ? 'error' : error === undefined ? 'success' : 'failure' },
    ...{ subjects: { user: 'ada', issuer: 'https://idp.example.com' }, target: { name: 'greeting', backend_name: 'desk' } },
    metadata: { extra: { duration_ms: 12.346, workflow: { id: 'run-1', ...(step && { step }) } } },
  })
  expect(JSON.stringify(line)).not.toContain('swordfish')
})
