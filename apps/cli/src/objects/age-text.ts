/** A length of time in at most two units, as kubectl prints it: 45s, 3m20s, 5h, 12d. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (!Number.isFinite(ms)) return '?'
  if (seconds < 120) return `${seconds}s`
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600), Math.floor(seconds / 86_400)]
  if (minutes < 10) return withRest(`${minutes}m`, seconds % 60, 's')
  if (hours < 3) return `${minutes}m`
  if (hours < 8) return withRest(`${hours}h`, minutes % 60, 'm')
  if (days < 2) return `${hours}h`
  return days < 8 ? withRest(`${days}d`, hours % 24, 'h') : `${days}d`
}

function withRest(text: string, rest: number, unit: string): string {
  return rest === 0 ? text : `${text}${rest}${unit}`
}
