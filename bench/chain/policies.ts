/**
 * So many policies that let the benchmark do everything: one permit for its group, and the rest about single tools, half permits that add
 * nothing and half forbids for somebody else.
 */
export function policyTexts(count: number): string[] {
  const others = Array.from({ length: count - 1 }, (_, i) => {
    const scope = `principal, action == Action::"call_tool", resource == Tool::"tool_${i}"`
    return i % 2 === 0
      ? `permit(${scope}) when { principal.claim_sub == "user_${i}" };`
      : `forbid(${scope}) when { context.claim_sub == "user_${i}" };`
  })
  return ['permit(principal in THVGroup::"bench", action, resource);', ...others]
}

export function authzConfig(count: number): object {
  return { version: '1.0', type: 'cedarv1', cedar: { policies: policyTexts(count) } }
}

const GROUPS = 7_000

/** 1,000 policies and about a megabyte of groups in groups. Another edition is another document. */
export function largeAuthzConfig(edition: number): object {
  const entities = Array.from({ length: GROUPS }, (_, at) => ({
    uid: { type: 'THVGroup', id: `group-${at}` },
    attrs: { note: `${edition} ${'x'.repeat(60)}` },
    parents: at % 10 === 0 ? [] : [{ type: 'THVGroup', id: `group-${at - 1}` }],
  }))
  return { version: '1.0', type: 'cedarv1', cedar: { policies: policyTexts(1_000), entities_json: JSON.stringify(entities) } }
}
