a[$(touch pwned)]
