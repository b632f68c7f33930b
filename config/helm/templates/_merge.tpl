{{/* Merges a dictionary into another as a strategic merge patch: lists of these names by a key, other lists as a whole. */}}
{{- define "merge" -}}
{{- $keys := dict "containers" "name" "env" "name" "ports" "containerPort" "volumeMounts" "mountPath" "volumes" "name" -}}
{{- range $name, $value := .from -}}
  {{- $old := get $.into $name -}}
  {{- $key := get $keys $name -}}
  {{- if and (kindIs "map" $value) (kindIs "map" $old) -}}
    {{- include "merge" (dict "into" $old "from" $value) -}}
  {{- else if and $key (kindIs "slice" $old) -}}
    {{- $new := list -}}
    {{- range $item := $value -}}
      {{- $found := false -}}
      {{- range $old -}}
        {{- if eq (toString (get . $key)) (toString (get $item $key)) -}}
          {{- $found = true -}}
          {{- include "merge" (dict "into" . "from" $item) -}}
        {{- end -}}
      {{- end -}}
      {{- if not $found -}}
        {{- $new = append $new $item -}}
      {{- end -}}
    {{- end -}}
    {{- /* As kubectl does it. */ -}}
    {{- $_ := set $.into $name (concat $new $old) -}}
  {{- else if kindIs "invalid" $value -}}
    {{- $_ := unset $.into $name -}}
  {{- else -}}
    {{- $_ := set $.into $name $value -}}
  {{- end -}}
{{- end -}}
{{- end -}}
