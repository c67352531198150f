import { furtherOf, type SchemaNode } from '../schema-node.ts'

/** Whether some pattern of the schema, or of its rules, could keep a backtracking matcher busy with a short text. */
export function canTakeLong(node: SchemaNode): boolean {
  const further = furtherOf(node)
  return (
    (node.pattern !== undefined && isRiskyPattern(node.pattern)) ||
    (node['x-kubernetes-validations'] ?? []).some(({ rule, messageExpression = '' }) => isRiskyRule(`${rule} ${messageExpression}`)) ||
    [...(node.allOf ?? []), ...(node.anyOf ?? []), ...(node.oneOf ?? []), node.not, node.items, further].some(
      (inner) => inner !== undefined && canTakeLong(inner),
    ) ||
    Object.values(node.properties ?? {}).some(canTakeLong)
  )
}

/** Loops in loops, and a pattern that is not written out: that may be anything. */
function isRiskyRule(rule: string): boolean {
  if ([...rule.matchAll(/\.(?:all|exists|exists_one|map|filter)\s*\(/g)].length >= MANY) return true
  const calls = rule.matchAll(/(?:matches|find|findAll)\s*\(\s*(r?"(?:[^"\\]|\\.)*"|r?'(?:[^'\\]|\\.)*')?/g)
  return [...calls].some(([, literal]) => literal === undefined || isRiskyPattern(literal))
}

/** Two loops or repeats over a small object are done at once; each further one multiplies the work by its size. */
const MANY = 3

/** Many repeats without end, or one around something that holds such a repeat or alternatives. */
function isRiskyPattern(pattern: string): boolean {
  const text = pattern.replace(/\\./g, 'x').replace(/\[(?:\]|[^\]])[^\]]*\]/g, 'x')
  if ([...text.matchAll(/[*+]|\{\d*,\}/g)].length >= MANY) return true
  const open: boolean[] = []
  for (let at = 0; at < text.length; at += 1) {
    const repeats = /^(?:[*+]|\{\d*,\})/.test(text.slice(at, at + 8))
    if (text[at] === '(') open.push(false)
    else if (text[at] === ')') {
      const risky = open.pop() ?? false
      const repeated = /^(?:[*+]|\{\d*,\})/.test(text.slice(at + 1, at + 9))
      if (risky && repeated) return true
      if (risky || repeated) markOpen(open)
    } else if (repeats || text[at] === '|') markOpen(open)
  }
  return false
}

function markOpen(open: boolean[]): void {
  if (open.length > 0) open[open.length - 1] = true
}
