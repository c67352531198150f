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
