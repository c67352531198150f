import { expect, it } from 'vitest'
import { resolveAudit } from './audit.ts'
import { contributionOf, runnerReads } from './testing/snapshot.ts'

it('turns audit events on with the defaults of the runner, or not at all', () => {
  expect(contributionOf(resolveAudit({ audit: { enabled: false } }))).toEqual({})
  const { runConfig } = contributionOf(resolveAudit({ audit: { enabled: true } }))
  expect(runConfig?.audit_config).toMatchObject({ enabled: true, include_request_data: false, include_response_data: false })
  // Whatever the reader would fill in anyway: written out, so that a later default of its own does not change running workloads.
  expect(runnerReads({ runConfig: { audit_config: runConfig?.audit_config } as never }).audit_config).toEqual(runConfig?.audit_config)
})
