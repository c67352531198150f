/** `$(NAME)` becomes the variable's value, `$$` a dollar sign; what names no variable stays as it is. */
export function expand(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (whole, name: string | undefined) => {
    if (name === undefined) return '$'
    return Object.hasOwn(variables, name) ? (variables[name] ?? '') : whole
  })
}
